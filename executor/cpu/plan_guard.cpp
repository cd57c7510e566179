#include "executor/cpu/plan_guard.h"

#include <algorithm>

#include "ir/error.h"

namespace fluid {
namespace {

constexpr std::byte kPoison{0xFF};  // a NaN in every float type

}  // namespace

PlanGuard::PlanGuard(const MemoryPlan& plan, int positions) : plan_(plan), positions_(positions) {}

std::vector<PlanGuard::Span> PlanGuard::dead_at(int position) const {
  std::vector<Span> live;
  auto add = [&](const Range& r) {
    if (r.bytes == 0) return;  // an empty range may lie past the end
    if (r.region == Region::transient && r.first <= position && position <= r.last) {
      live.push_back({r.offset, r.offset + r.bytes});
    }
  };
  for (const auto& [value, range] : plan_.values) add(range);
  for (const auto& [op, range] : plan_.workspaces) add(range);
  std::sort(live.begin(), live.end(),
            [](const Span& a, const Span& b) { return a.begin < b.begin; });
  std::vector<Span> dead;
  int64_t end = 0;
  for (const Span& s : live) {
    if (s.begin > end) dead.push_back({end, s.begin});
    end = std::max(end, s.end);
  }
  if (end < plan_.transient) dead.push_back({end, plan_.transient});
  return dead;
}

void PlanGuard::poison(int position) {
  for (const Span& s : dead_at(position)) {
    std::fill(transient_ + s.begin, transient_ + s.end, kPoison);
  }
}

void PlanGuard::after(int position, const ir::Op& op) {
  for (const Span& s : dead_at(position)) {
    const std::byte* end = transient_ + s.end;
    const std::byte* bad = std::find_if<const std::byte*>(transient_ + s.begin, end,
                                                          [](std::byte b) { return b != kPoison; });
    if (bad == end) continue;
    throw InternalError("op '" + op.name + "' wrote to byte " + std::to_string(bad - transient_) +
                        " of the arena, where the plan has nothing");
  }
  if (position + 1 < positions_) poison(position + 1);
}

}  // namespace fluid
