#pragma once

#include "ops/kernel_writer.h"

namespace fluid {

/// Operand indices for scatter_lines_kernel().
struct ScatterOperands {
  std::optional<size_t> initial;
  size_t index = 0, updates = 0;
};
/// Returns the kernel of scatter and scatter_add. The kernel processes the 1-D slices ("lines") of
/// the result along attribute "axis". It sets a line to `initial`, or to zeros if `initial` is
/// absent. Then it combines result[index[t]] with updates[t], in ascending order of t.
/// Half-precision values are combined in f32. With `initial`, an out-of-range index sets the error
/// word of operand 0. Without `initial`, the op is a gradient, and the forward op has checked the
/// index.
kir::Kernel scatter_lines_kernel(const LoopsCtx& c, const ScatterOperands& operands,
                                 const std::string& reduce);

/// Throws UserError (by c.fail()) unless `updates` has x's dtype, and the shapes of `index` and
/// `updates` equal x's except along `axis`.
void require_scatter_shapes(const InferCtx& c, const Type& x, const Type& index,
                            const Type& updates, int64_t axis);

/// Whether `reduce` is a valid value of attribute "reduce".
bool is_scatter_reduction(const std::string& reduce);
/// Definition of attribute "reduce", which is "none" by default.
AttrDef scatter_reduce_attr();
/// Throws UserError (by c.fail()) unless attribute "reduce" is valid.
void require_scatter_reduction(const InferCtx& c);
/// Returns the value of an element after one update. `old`: the value before the update.
Expr combine_update(const std::string& reduce, const Expr& old, const Expr& update);

/// Functions that record the ops of a scatter's gradient. `gather` reads elements of x at the
/// indices of the scatter. `scatter` scatters updates into x, with the given reduction.
struct ScatterFunctions {
  std::function<Value(Value x)> gather;
  std::function<Value(Value x, Value updates, const std::string& reduce)> scatter;
};
/// Returns the gradients of a scatter with operands (x, index, updates).
Values scatter_gradients(const GradCtx& c, const ScatterFunctions& f);

}  // namespace fluid
