#pragma once

#include "codegen/schedule_flat.h"

namespace fluid {

/// Splits the loops of a CPU kernel at the indices where a comparison of the loop variable with a
/// constant changes its result (index set splitting). Each part of the range becomes a loop whose
/// body holds the comparison's result. So a concatenation becomes one copy loop per operand,
/// instead of a loop that loads from every operand. Splits a loop only if its iterations then
/// load and store clearly less. Iterations keep their order, and elements their values.
void split_loops(KernelBuilder& builder);

}  // namespace fluid
