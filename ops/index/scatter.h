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

/// The values of attribute "reduce".
bool is_scatter_reduction(const std::string& reduce);

}  // namespace fluid
