#include "executor/device/collective_role.h"

#include <algorithm>
#include <map>
#include <set>

#include "ops/source_kind.h"

namespace fluid {

/// The memory planner places the operands of a collective next to each other. Together with their
/// alignment gaps, the operands form one buffer.
CollectiveRole collective_role(const MemoryPlan& plan, const ir::Op& op) {
  const Range& first = plan.values.at(root_of(op.operands.front()));
  const Range& last = plan.values.at(root_of(op.operands.back()));
  const int64_t bytes = last.offset + last.bytes - first.offset;
  return {.elements = bytes / size_of(op.operands.front().dtype()), .kind = collective_kind(op)};
}

size_t complete_collective_roles(std::span<const CallWithRole> calls) {
  std::map<const ir::Op*, size_t> collective_numbers;
  for (const CallWithRole& call : calls) {
    if (call.role->is_collective())
      collective_numbers.emplace(call.op, collective_numbers.size() + 1);
  }
  std::set<const ir::Op*> dependent_ops;
  for (const CallWithRole& call : calls) {
    CollectiveRole& role = *call.role;
    role.depends_on_collective = role.is_collective();
    for (const Value& v : call.op->operands) {
      const ir::Op* from = root_of(v).op();
      if (const auto number = collective_numbers.find(from); number != collective_numbers.end()) {
        role.awaited_collectives = std::max(role.awaited_collectives, number->second);
      }
      role.depends_on_collective = role.depends_on_collective || dependent_ops.contains(from);
    }
    if (role.depends_on_collective) dependent_ops.insert(call.op);
  }
  return collective_numbers.size();
}

}  // namespace fluid
