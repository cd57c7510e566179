#include "executor/device/buffer_refs.h"

#include <algorithm>

#include "ops/source_kind.h"

namespace fluid {

BufferRef buffer_of(const MemoryPlan& plan, const Value& value) {
  const auto found = plan.values.find(root_of(value));
  check(found != plan.values.end(),
        [&] { return "'" + value.op()->name + "' has a result without memory"; });
  const Range& range = found->second;
  return {.region = range.region,
          .offset = range.region == Region::state ? 0 : range.offset,
          .variable = range.region == Region::state ? range.name : ""};
}

std::optional<StoreCopy> store_copy(const MemoryPlan& plan, const ir::Op& store, int64_t batch) {
  const BufferRef from = buffer_of(plan, store.operands.at(0));
  const int64_t bytes = store.operands[0].type().bytes_at(batch);
  if (is_carry(store)) {
    const auto carried = plan.workspaces.find(&store);
    // The memory plan placed the operand at the destination of the carried value, so no copy is
    // needed.
    if (carried == plan.workspaces.end()) return std::nullopt;
    return StoreCopy{from, {.offset = carried->second.offset}, bytes, false};
  }
  if (from.region == Region::state && from.variable == store.symbol) return std::nullopt;
  return StoreCopy{from, {.region = Region::state, .variable = store.symbol}, bytes, true};
}

std::byte* address_of(const BufferRef& buffer, const MemoryAddresses& memory,
                      const Variables& variables, Slots slots) {
  if (buffer.region == Region::state) {
    return memory.state + variables.at(buffer.variable).offset + buffer.offset;
  }
  if (buffer.region == Region::transient) return memory.transient + buffer.offset;
  std::byte* slot = buffer.region == Region::feeds
                        ? memory.slots.feeds[static_cast<size_t>(slots.feeds)]
                        : memory.slots.outputs[static_cast<size_t>(slots.outputs)];
  return slot + buffer.offset;
}

}  // namespace fluid
