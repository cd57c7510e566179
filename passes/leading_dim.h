#pragma once

#include <vector>

#include "ir/graph.h"

namespace fluid {

/// Whether row i of the result of `op` depends only on row i of each operand marked in `has_rows`,
/// and on the unmarked operands. A row is an element along the leading dimension. If the rows of
/// several steps are concatenated, such an op computes the results of all steps at once. Examples
/// are an elementwise op and a matmul whose left operand has rows.
bool is_rowwise(const ir::Op& op, const std::vector<bool>& has_rows);

/// Whether `op` sums over dimension 0 of every operand. The op then maps the concatenated rows of
/// several steps to the sum of the results of the steps. Examples are the gradients of a weight
/// matrix (a matmul that sums over the batch) and of a bias.
bool reduces_rows(const ir::Op& op);

/// Reshapes [T, N, ...] to [T * N, ...]: concatenates the rows of all T elements of a sequence.
Value concatenated_rows(Value sequence, const Loc& loc);

/// Records an op like `op`, but with `operands`, which may have a different number of rows. Returns
/// null if the op rejects the operands, or if its scalar expression depends on the number of rows.
Value record_like(ir::Graph& graph, const ir::Op& op, const Values& operands);

}  // namespace fluid
