#include "executor/device/collective_role.h"

#include <algorithm>
#include <map>
#include <set>

#include "ops/source_kind.h"

namespace fluid {

/// The memory planner puts the operands side by side, so they are one buffer, alignment gaps
/// included.
CollectiveRole collective_role(const MemoryPlan& plan, const ir::Op& op) {
  const Range& first = plan.values.at(root_of(op.operands.front()));
  const Range& last = plan.values.at(root_of(op.operands.back()));
  const int64_t bytes = last.offset + last.bytes - first.offset;
  return {.elements = bytes / size_of(op.operands.front().dtype()), .kind = collective_kind(op)};
}

size_t link_collectives(std::span<const LinkedCall> calls) {
  std::map<const ir::Op*, size_t> numbers;
  for (const LinkedCall& call : calls) {
    if (call.role->exchanges()) numbers.emplace(call.op, numbers.size() + 1);
  }
  std::set<const ir::Op*> made;
  for (const LinkedCall& call : calls) {
    CollectiveRole& role = *call.role;
    role.depends_on_collective = role.exchanges();
    for (const Value& v : call.op->operands) {
      const ir::Op* from = root_of(v).op();
      if (const auto number = numbers.find(from); number != numbers.end()) {
        role.awaited_collectives = std::max(role.awaited_collectives, number->second);
      }
      role.depends_on_collective = role.depends_on_collective || made.contains(from);
    }
    if (role.depends_on_collective) made.insert(call.op);
  }
  return numbers.size();
}

}  // namespace fluid
