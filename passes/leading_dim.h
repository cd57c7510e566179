#pragma once

#include <vector>

#include "ir/graph.h"

namespace fluid {

/// Whether row i of the result of `op` depends only on row i of the operands that `has_rows` marks,
/// and on the other operands, where a row is an element along the leading dimension. Such an op
/// computes the results of several steps at once if the rows of the steps are concatenated.
/// Examples are an elementwise op and a matmul whose left operand has rows.
bool maps_rows(const ir::Op& op, const std::vector<bool>& has_rows);

/// Whether the result of `op` is a sum over the rows of all operands. Then the sum of the results
/// of several steps is the result of the op for the concatenated rows. Examples are the gradient of
/// a weight matrix, a product of two matrices over the batch, and the gradient of a bias.
bool sums_rows(const ir::Op& op);

/// [T, N, ...] -> [T * N, ...]: concatenates the rows of the elements of a sequence.
Value concatenated_rows(Value sequence, const Loc& loc);

/// Records an op like `op`, but with `operands`. Null if the op does not accept them or its result
/// differs from the result of `op` in more than the leading dimension.
Value record_for_rows(ir::Graph& graph, const ir::Op& op, const Values& operands);

}  // namespace fluid
