#pragma once

// Building blocks of schedules.

#include "codegen/schedule_flat.h"

namespace fluid {

/// Appends a loop to `block` and returns the loop's body.
kir::Block& add_loop(kir::Block& block, int64_t var, const Expr& begin, const Expr& end,
                     kir::For::Kind kind = kir::For::Kind::serial);
/// Binds `var` to `value` by a loop of one iteration. Returns its body.
kir::Block& give(kir::Block& block, int64_t var, const Expr& value);
kir::Block& add_if(kir::Block& block, const Expr& condition);
/// Splits `number` into mixed-radix digits and binds a variable to each. `digits` holds (variable,
/// extent), fastest first.
kir::Block& unpack(KernelBuilder& builder, const Expr& number,
                   const std::vector<std::pair<int64_t, Expr>>& digits, kir::Block& block);

/// Whether `leaf` returns true for any leaf of `e`.
bool depends(const Expr& e, const std::function<bool(const Expr& leaf)>& leaf);

/// Replaces the largest subexpressions of `exprs` that contain a load or function by Lets appended
/// to `block`. `known` must hold for all variables and lets of a replaced subexpression.
void hoist(KernelBuilder& builder, const std::vector<Expr*>& exprs,
           const std::function<bool(const Expr& leaf)>& known, kir::Block& block);

/// Replaces subexpressions that occur more than once in `exprs` by Lets appended to `block`.
void share(KernelBuilder& builder, const std::vector<Expr*>& exprs, kir::Block& block);
/// Appends a Let with value `e` to `block`. Returns the expression that reads the Let.
Expr name_value(KernelBuilder& builder, const Expr& e, kir::Block& block);
Expr let_node(int64_t id, DType dtype);

/// How well the sink's loads and stores suit lanes along `var`. `good` counts 1 for an access of
/// stride 1 and less for others; `all` is the number of accesses.
struct Fit {
  double good = 0;
  double all = 0;
};
Fit vector_fit(const KernelBuilder& builder, const FlatSink& sink, int64_t var);

/// Returns the fraction of lanes that are used when a loop of this extent runs in vectors.
double lane_utilization(const Dim& extent, int64_t lanes = kCpu.lanes);

/// The batch size that cost estimates assume.
inline constexpr int64_t kNominalBatch = 64;
double nominal(const Dim& extent);
double nominal_points(const KernelBuilder& builder, const Vars& vars);
/// Returns the scalar operations of one evaluation of the sink.
double operations(const FlatSink& sink);

/// Emits stores that set an input's error words to {1, index} where an index is bad.
void emit_checks(const FlatSink& sink, kir::Block& block);

bool contains(const Vars& vars, int64_t v);
Vars without(const Vars& vars, const Vars& removed);
Expr min_index(const Expr& a, const Expr& b);
Expr ceil_div(const Expr& a, int64_t n);
/// Returns the product of the variables' extents.
Expr points(const KernelBuilder& builder, const Vars& vars);

/// Reads a reduction's accumulator as `dtype`; with `lanes`, the total of its lanes.
Expr read_acc(int64_t acc, DType dtype, const std::vector<Expr>& index, bool lanes);
/// Reads the position of an argmax as i64. `values` is the dtype of its values.
Expr read_position(int64_t acc, DType values, const std::vector<Expr>& index, bool lanes);

}  // namespace fluid
