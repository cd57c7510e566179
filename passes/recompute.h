#pragma once

#include <vector>

#include "passes/fusion.h"

namespace fluid {

/// Recomputes values in the kernels that read them instead of storing them, if this increases
/// neither memory nor traffic. Example: backward of batch norm centres its operand again, from the
/// half-precision result of the convolution, so that no f32 result is kept. The mask of a relu is
/// recomputed from its result, which the next layer keeps anyway. `groups` are the kernels in
/// execution order; their ops change. Repeated ops are appended to `graph`.
///
/// Recomputed values have the same bits. Only cheap ops are repeated: differences, products,
/// comparisons, selections, casts. Ops that round to half precision are not repeated, because
/// kernels round only when they store. A comparison with a half-precision value of the first kernel
/// uses the stored, rounded value.
void recompute(ir::Graph& graph, std::vector<FusionGroup>& groups, int64_t batch);

}  // namespace fluid
