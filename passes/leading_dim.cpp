#include "passes/leading_dim.h"

#include <algorithm>

#include "ops/arguments.h"
#include "ops/operators.h"
#include "ops/record.h"
#include "ops/table.h"

namespace fluid {
namespace {

bool is_lowered(const ir::Op& op) {
  const Lower& lower = *def_of(op).lower;
  const bool loops = std::holds_alternative<Map>(lower) || std::holds_alternative<Reduce>(lower);
  return loops && op.results.size() == 1 && std::holds_alternative<Pure>(*def_of(op).effects);
}

bool has_leading_dim(Value v, const Dim& extent) {
  return !v.shape().empty() && v.shape()[0] == extent;
}

/// Whether `body` uses loop variable `var` only as the leading index of reads. Every read of an
/// operand marked in `has_rows` must have `var` as its leading index.
bool indexes_rows_only(const Expr& body, int64_t var, const std::vector<bool>& has_rows) {
  bool valid = true;
  size_t uses = 0, leading = 0;
  const auto is_var = [&](const Expr& e) {
    return e.op() == ScalarOp::var && e.node().ivalue == var;
  };
  for_each_node(body, [&](const Expr& e) {
    uses += static_cast<size_t>(std::ranges::count_if(e.args(), is_var));
    if (e.op() == ScalarOp::philox) valid = false;  // random numbers depend on all loop variables
    if (e.op() != ScalarOp::read) return;
    if (!has_rows[static_cast<size_t>(e.node().ivalue)]) return;
    const bool own = !e.args().empty() && is_var(e.args()[0]);
    leading += own ? 1 : 0;
    valid = valid && own;
  });
  return valid && uses == leading && !is_var(body);
}

}  // namespace

bool is_rowwise(const ir::Op& op, const std::vector<bool>& has_rows) {
  if (!is_lowered(op) || op.results[0].type.shape.empty()) return false;
  const Dim rows = op.results[0].type.shape[0];
  for (size_t i = 0; i < op.operands.size(); ++i) {
    if (has_rows[i] && !has_leading_dim(op.operands[i], rows)) return false;
  }
  return indexes_rows_only(lower_op(op).bodies[0], 0, has_rows);
}

bool reduces_rows(const ir::Op& op) {
  if (!is_lowered(op) || !std::holds_alternative<Reduce>(*def_of(op).lower)) return false;
  const Lowered lowered = lower_op(op);
  if (lowered.combine != Combine::sum) return false;
  const std::vector<bool> all(op.operands.size(), true);
  for (size_t r = 0; r < lowered.reduce.size(); ++r) {
    const auto var = static_cast<int64_t>(lowered.out.size() + r);
    const bool fits = std::ranges::all_of(
        op.operands, [&](Value v) { return has_leading_dim(v, lowered.reduce[r]); });
    if (fits && indexes_rows_only(lowered.bodies[0], var, all)) return true;
  }
  return false;
}

Value concatenated_rows(Value sequence, const Loc& loc) {
  Shape shape = sequence.shape();
  const int64_t steps = shape[0].size;
  shape.erase(shape.begin());
  shape[0].size *= steps;
  return reshape(sequence, shape, loc);
}

Value record_like(ir::Graph& graph, const ir::Op& op, const Values& operands) {
  Type like = op.results[0].type;
  try {
    const std::vector<Type> types =
        (*def_of(op).infer)(InferCtx(op.name, operand_types(operands), op.attrs, op.loc));
    Type made = types.at(0);
    if (made.shape.rank() != like.shape.rank()) return {};
    if (!like.shape.empty()) made.shape[0] = like.shape[0];
    if (made != like) return {};
  } catch (const UserError&) {
    return {};  // for example, an attribute contains the number of rows
  }
  const Value recorded = record(graph, op.name, operands, op.attrs, op.loc)[0];
  // The new op is not equivalent if its expression contains the number of rows. An example is a
  // mean over rows.
  const bool same = structurally_equal(lower_op(*recorded.op()).bodies[0], lower_op(op).bodies[0]);
  return same ? recorded : Value();
}

}  // namespace fluid
