#include "frontend/penalties.h"

#include <set>
#include <vector>

#include "ops/operators.h"

namespace fluid {
namespace {

/// The parameters on which `loss` depends, in the order of the graph.
std::vector<Value> parameters_of(Value loss) {
  std::set<const ir::Op*> needed = {loss.op()};
  std::vector<Value> parameters;
  const auto& ops = loss.op()->graph()->ops;
  for (size_t i = ops.size(); i-- > 0;) {
    if (!needed.contains(ops[i].get())) continue;
    for (const Value operand : ops[i]->operands) needed.insert(operand.op());
  }
  for (const auto& op : ops) {
    if (needed.contains(op.get()) && op->name == "param") parameters.push_back(op->result());
  }
  return parameters;
}

}  // namespace

Value with_penalties(Value loss, const Loc& loc) {
  for (const Value p : parameters_of(loss)) {
    const Attrs& options = p.op()->attrs;
    if (!options.get_or("trainable", true)) continue;
    const double l1 = options.get_or("l1", 0.0), l2 = options.get_or("l2", 0.0);
    if (l1 != 0) loss = loss + cast(sum(abs(p, loc), {}, loc), loss.dtype(), loc) * l1;
    if (l2 != 0) loss = loss + cast(sum(square(p, loc), {}, loc), loss.dtype(), loc) * l2;
  }
  return loss;
}

}  // namespace fluid
