#pragma once

#include <vector>

#include "passes/fusion.h"

namespace fluid {

/// Runs kernels of maps a second time, late, where that lowers the peak of memory: what batch norm
/// and relu make of a convolution's result for the next layer, which backward needs again, need not
/// wait there when the convolution's result does; nor need the half of a parameter. The kernel is
/// the same, and so are the bits. `groups` are the kernels in an order of execution, among which
/// the repeated ones take their places; `graph` gets their ops at its end.
void repeat_kernels(ir::Graph& graph, std::vector<FusionGroup>& groups, int64_t batch);

}  // namespace fluid
