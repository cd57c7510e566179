#pragma once

// Recognition of matrix products among fused groups.

#include <optional>

#include "codegen/schedule_loops.h"

namespace fluid {

/// A fused group that is a matrix product with an elementwise epilogue: y[.., m, n] = sum over k of
/// a[.., m, k] * b[.., k, n], where b is contiguous along n. A 1x1 convolution of images whose
/// channels come first is such a product, too.
struct ProductGroup {
  std::vector<FlatRoot> roots;  ///< the product, then its epilogue
  int64_t depth = -1;           ///< variable k
  int64_t column = -1;          ///< variable n
  int64_t row = -1;             ///< variable m; -1: there is a single row
  Vars outer;                   ///< the other result variables
  Expr left, right;             ///< loads of a and b

  DType accumulator_dtype() const { return roots.front().acc_dtype; }
  int64_t lanes() const;
  /// Whether a is contiguous along m.
  bool has_transposed_left() const;
};

/// Returns the group of `builder` as a matrix product, or nullopt if it is not one.
std::optional<ProductGroup> match_product(KernelBuilder& builder);

/// Returns the difference of the offset of `load` between adjacent values of `var`; the maximum of
/// int64_t if it is not constant.
int64_t stride_of(const Expr& load, int64_t var);

}  // namespace fluid
