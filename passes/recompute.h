#pragma once

#include <vector>

#include "passes/fusion.h"

namespace fluid {

/// Lets kernels compute again, element by element, what they would read from another kernel, where
/// that takes neither more memory nor more traffic: batch norm's backward centres its operand once
/// more, from the half that the convolution left, instead of keeping the result in f32; the mask of
/// a relu follows from its result, which the next layer keeps anyway. `groups` are the kernels in
/// an order of execution; what they hold changes, and `graph` gets the repeated ops at its end.
///
/// What is repeated has the same bits, as all values but halves have: differences, products,
/// comparisons, selections and casts, but nothing that takes longer than its traffic, and nothing
/// that rounds to a half, since kernels round what they store alone. A comparison with a half that
/// the first kernel computes itself sees it rounded, as it is stored.
void recompute(ir::Graph& graph, std::vector<FusionGroup>& groups, int64_t batch);

}  // namespace fluid
