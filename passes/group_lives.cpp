#include "passes/group_lives.h"

#include <algorithm>

#include "ops/source_kind.h"
#include "passes/memory_plan.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

void add(LiveRanges& lives, Value v, int at) {
  if (root_of(v) == v && source_kind(*v.op()) == SourceKind::none) lives[v] = {at, at};
}

}  // namespace

LiveRanges live_ranges_of(const ir::Graph& graph, const std::vector<FusionGroup>& groups) {
  LiveRanges lives;
  int at = 0;
  for (const FusionGroup& group : groups) {
    for (const ir::Op* op : group.ops) {
      for (const Value& v : op->operands) {
        const auto life = lives.find(root_of(v));
        if (life != lives.end()) life->second.last = at;
      }
      for (size_t r = 0; !group.fusible && r < op->results.size(); ++r) {
        add(lives, Value(const_cast<ir::Op*>(op), static_cast<int>(r)), at);
      }
    }
    for (const Value& v : group.outputs) add(lives, v, at);
    ++at;
  }
  for (const ir::Output& o : graph.outputs) lives.erase(root_of(o.value));
  for (const auto& op : graph.ops) {
    if (is_store(*op)) lives.erase(root_of(op->operands[0]));
  }
  return lives;
}

int64_t peak_of(const LiveRanges& lives, int64_t batch) {
  std::map<int, int64_t> changes;
  for (const auto& [v, life] : lives) {
    changes[life.first] += v.type().bytes_at(batch);
    changes[life.last + 1] -= v.type().bytes_at(batch);
  }
  int64_t in_use = 0, peak = 0;
  for (const auto& [at, change] : changes) peak = std::max(peak, in_use += change);
  return peak;
}

bool stays_intact(Value v, const Uses& uses) {
  if (is_collective(*root_of(v).op())) return false;
  const auto readers = uses.find(root_of(v));
  return readers == uses.end() ||
         std::ranges::none_of(readers->second, [](const ir::Op* op) { return is_collective(*op); });
}

bool is_generated(const FusionGroup& group) {
  return group.fusible && !group.outputs.empty() &&
         (group.ops.size() > 1 ||
          !std::holds_alternative<Alias>(*def_of(*group.ops.front()).lower));
}

}  // namespace fluid
