#pragma once

#include "ops/kernel_writer.h"

namespace fluid {

/// The kernel of scatter and scatter_add along `axis` of result 0, whose rows are lines along the
/// axis. Sets the result to `initial` (zeros if null) and then combines, for each line and in
/// ascending order of t, result[index[t]] with updates[t]. Half precision is combined in f32. With
/// `initial`, an index out of range sets the error word of operand 0; without it, the op is a
/// gradient whose index has been checked before.
struct ScatterOperands {
  std::optional<size_t> initial;
  size_t index = 0, updates = 0;
};
kir::Kernel scatter_lines_kernel(const LoopsCtx& c, const ScatterOperands& operands,
                                 const std::string& reduce);

/// The shapes of index and updates agree with x's along all dimensions but `axis`. Throws UserError
/// (by c.fail()) otherwise.
void require_lines(const InferCtx& c, const Type& x, const Type& index, const Type& updates,
                   int64_t axis);

/// Whether `reduce` is a value of attribute "reduce".
bool is_scatter_reduction(const std::string& reduce);
/// Definition of attribute "reduce". Its fallback is "none".
AttrDef scatter_reduce_attr();
/// Throws UserError (by c.fail()) unless attribute "reduce" is valid.
void require_scatter_reduction(const InferCtx& c);
/// Returns an element after the update by reduction `reduce`.
Expr combine_update(const std::string& reduce, const Expr& old, const Expr& update);

/// Returns the gradients of a scatter with operands (x, index, updates). `gather` reads a tensor
/// like x at the indices; `scatter` scatters updates into a tensor like x by a reduction.
struct ScatterFunctions {
  std::function<Value(Value x)> gather;
  std::function<Value(Value x, Value updates, const std::string& reduce)> scatter;
};
Values scatter_gradients(const GradCtx& c, const ScatterFunctions& f);

}  // namespace fluid
