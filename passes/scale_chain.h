#pragma once

#include <map>
#include <optional>
#include <set>

#include "ir/graph.h"
#include "ops/expr.h"

namespace fluid {

/// An elementwise op that scales or shifts the result of the op before it: x * w, x + w or x - w.
struct ScaleOrShift {
  const ir::Op* op = nullptr;
  ScalarOp scalar = ScalarOp::add;
  size_t weight = 0;  ///< operand index of w
};

/// Returns `op` as a ScaleOrShift, or nullopt if it does not scale or shift the result of `before`
/// by a weight. `weights`: the result of weight_ops().
std::optional<ScaleOrShift> scale_or_shift(const ir::Op& op, const ir::Op& before,
                                           const std::map<const ir::Op*, bool>& weights);

/// Aligns `shape` with a shape of rank `rank`, as in broadcasting. Returns a map from dimension to
/// extent, without dimensions of extent 1.
std::map<size_t, Dim> broadcast_dims(const Shape& shape, size_t rank);

/// Whether w of `link` has at most one dimension beyond extent 1, dimension `dim` of the result.
bool varies_along(const ScaleOrShift& link, size_t dim);

/// The function x * scale + shift; a null value stands for no factor or no summand.
struct ScaleAndShift {
  Value scale, shift;

  /// Records the ops that apply `link` after this function.
  void append(const ScaleOrShift& link);
};

}  // namespace fluid
