#pragma once

#include <vector>

#include "passes/fusion.h"

namespace fluid {

/// Runs kernels of maps a second time, before late readers, if this lowers peak memory. Example:
/// backward reads the results of batch norm and relu again. They need not stay alive if the
/// convolution's result does. The same holds for half-precision copies of parameters. A repeated
/// kernel is the same code, so results have the same bits. `groups` are the kernels in execution
/// order; repeated kernels are inserted. Their ops are appended to `graph`.
void repeat_kernels(ir::Graph& graph, std::vector<FusionGroup>& groups, int64_t batch);

}  // namespace fluid
