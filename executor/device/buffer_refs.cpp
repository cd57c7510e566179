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
          .offset = range.offset,
          .variable = range.region == Region::state ? range.name : ""};
}

std::vector<BufferRef> buffers_of(const MemoryPlan& plan, ir::Op& op) {
  std::vector<BufferRef> buffers;
  for (const Value& v : op.operands) buffers.push_back(buffer_of(plan, v));
  for (size_t r = 0; r < op.results.size(); ++r) {
    buffers.push_back(buffer_of(plan, op.result(static_cast<int>(r))));
  }
  return buffers;
}

bool updates_variables(const ir::Op& op, const std::vector<BufferRef>& buffers) {
  const auto results = buffers.begin() + static_cast<std::ptrdiff_t>(op.operands.size());
  return std::any_of(results, results + static_cast<std::ptrdiff_t>(op.results.size()),
                     [](const BufferRef& result) { return result.region == Region::state; });
}

int64_t workspace_offset_of(const MemoryPlan& plan, const ir::Op& op, int64_t bytes) {
  const auto planned = plan.workspaces.find(&op);
  const int64_t given = planned != plan.workspaces.end() ? planned->second.bytes : 0;
  check(bytes <= given, [&] {
    return "a kernel of '" + op.name + "' needs a workspace of " + std::to_string(bytes) +
           " bytes, but " + std::to_string(given) + " are planned";
  });
  return bytes > 0 ? planned->second.offset : 0;
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
  if (buffer.region == Region::state) return memory.state + variables.named(buffer.variable).offset;
  if (buffer.region == Region::transient) return memory.transient + buffer.offset;
  std::byte* slot = buffer.region == Region::feeds
                        ? memory.slots.feeds[static_cast<size_t>(slots.feeds)]
                        : memory.slots.outputs[static_cast<size_t>(slots.outputs)];
  return slot + buffer.offset;
}

}  // namespace fluid
