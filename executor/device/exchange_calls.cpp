#include "executor/device/exchange_calls.h"

#include <algorithm>
#include <map>
#include <set>

#include "ops/source_kind.h"

namespace fluid {

/// The memory planner puts the operands side by side, so they are one buffer, alignment gaps
/// included.
ExchangeRole exchange_of(const MemoryPlan& plan, const ir::Op& op) {
  const Range& first = plan.values.at(root_of(op.operands.front()));
  const Range& last = plan.values.at(root_of(op.operands.back()));
  const int64_t bytes = last.offset + last.bytes - first.offset;
  return {.elements = bytes / size_of(op.operands.front().dtype()), .kind = exchange_kind(op)};
}

size_t relate_exchanges(std::span<const RelatedCall> calls) {
  std::map<const ir::Op*, size_t> numbers;
  for (const RelatedCall& call : calls) {
    if (call.role->exchanges()) numbers.emplace(call.op, numbers.size() + 1);
  }
  std::set<const ir::Op*> made;
  for (const RelatedCall& call : calls) {
    ExchangeRole& role = *call.role;
    role.of_sums = role.exchanges();
    for (const Value& v : call.op->operands) {
      const ir::Op* from = root_of(v).op();
      if (const auto number = numbers.find(from); number != numbers.end()) {
        role.awaits = std::max(role.awaits, number->second);
      }
      role.of_sums = role.of_sums || made.contains(from);
    }
    if (role.of_sums) made.insert(call.op);
  }
  return numbers.size();
}

}  // namespace fluid
