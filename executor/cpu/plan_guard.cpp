#include "executor/cpu/plan_guard.h"

#include <algorithm>

#include "ir/error.h"

namespace fluid {
namespace {

constexpr std::byte kPoison{0xFF};  // fills dead memory; reads as NaN in every float type

}  // namespace

PlanGuard::PlanGuard(const MemoryPlan& plan, int op_count) : plan_(plan), op_count_(op_count) {}

std::vector<PlanGuard::ByteRange> PlanGuard::dead_ranges(int position) const {
  std::vector<ByteRange> live;
  auto add = [&](const Range& r) {
    if (r.bytes == 0) return;  // an empty range may start beyond the transient region
    if (r.region == Region::transient && r.first <= position && position <= r.last) {
      live.push_back({r.offset, r.offset + r.bytes});
    }
  };
  for (const auto& [value, range] : plan_.values) add(range);
  for (const auto& [op, range] : plan_.workspaces) add(range);
  std::sort(live.begin(), live.end(),
            [](const ByteRange& a, const ByteRange& b) { return a.begin < b.begin; });
  std::vector<ByteRange> dead;
  int64_t end = 0;
  for (const ByteRange& s : live) {
    if (s.begin > end) dead.push_back({end, s.begin});
    end = std::max(end, s.end);
  }
  if (end < plan_.transient) dead.push_back({end, plan_.transient});
  return dead;
}

void PlanGuard::poison_dead_memory(int position) {
  for (const ByteRange& s : dead_ranges(position)) {
    std::fill(transient_ + s.begin, transient_ + s.end, kPoison);
  }
}

void PlanGuard::check_after_op(int position, const ir::Op& op) {
  for (const ByteRange& s : dead_ranges(position)) {
    const std::byte* end = transient_ + s.end;
    const std::byte* bad = std::find_if<const std::byte*>(transient_ + s.begin, end,
                                                          [](std::byte b) { return b != kPoison; });
    if (bad == end) continue;
    throw InternalError("op '" + op.name + "' wrote to byte " + std::to_string(bad - transient_) +
                        " of the arena, where the plan has nothing");
  }
  if (position + 1 < op_count_) poison_dead_memory(position + 1);
}

}  // namespace fluid
