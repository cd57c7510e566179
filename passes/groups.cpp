#include "passes/groups.h"

#include <algorithm>

#include "ir/error.h"
#include "ops/source_kind.h"
#include "passes/memory_plan.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

using Positions = std::vector<int64_t>;

// Name of the attribute that holds the index of the op's group in execution order.
constexpr std::string_view kGroup = "group";
// Name of the attribute that holds the index of each result among the results of the kernel.
constexpr std::string_view kResults = "group_results";

void add(LiveRanges& lives, Value v, int at) {
  if (root_of(v) == v && source_kind(*v.op()) == SourceKind::none) lives[v] = {at, at};
}

}  // namespace

void mark_groups(ir::Graph& graph, const std::vector<FusionGroup>& groups) {
  std::map<const ir::Op*, std::unique_ptr<ir::Op>> ops;
  for (auto& op : graph.ops) {
    const ir::Op* key = op.get();
    ops[key] = std::move(op);
  }
  graph.ops.clear();
  for (size_t i = 0; i < groups.size(); ++i) {
    for (const ir::Op* op : groups[i].ops) {
      graph.ops.push_back(std::move(ops.at(op)));
      Attrs& attrs = graph.ops.back()->attrs;
      attrs.set(kGroup, static_cast<int64_t>(i));
      if (groups[i].fusible) attrs.set(kResults, Positions(op->results.size(), -1));
    }
    for (size_t k = 0; k < groups[i].outputs.size(); ++k) {
      const Value v = groups[i].outputs[k];
      Positions positions = v.op()->attrs.get<Positions>(kResults);
      positions[static_cast<size_t>(v.index())] = static_cast<int64_t>(k);
      v.op()->attrs.set(kResults, std::move(positions));
    }
  }
}

std::vector<FusionGroup> extract_groups(ir::Graph& graph) {
  std::vector<FusionGroup> groups;
  for (const auto& op : graph.ops) {
    if (!op->attrs.has(kGroup)) {
      throw UserError(op->loc, op->name + ": is in no group, as a pass after fuse made it");
    }
    const auto at = static_cast<size_t>(op->attrs.get<int64_t>(kGroup));
    op->attrs.erase(kGroup);
    if (groups.size() <= at) groups.resize(at + 1);
    FusionGroup& group = groups[at];
    group.ops.push_back(op.get());
    group.fusible = op->attrs.has(kResults);
    if (!group.fusible) continue;
    const Positions positions = op->attrs.get<Positions>(kResults);
    op->attrs.erase(kResults);
    for (size_t r = 0; r < positions.size(); ++r) {
      if (positions[r] < 0) continue;
      const auto k = static_cast<size_t>(positions[r]);
      if (group.outputs.size() <= k) group.outputs.resize(k + 1);
      group.outputs[k] = op->result(static_cast<int>(r));
    }
  }
  return groups;
}

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

int64_t peak_bytes(const LiveRanges& lives, int64_t batch) {
  std::map<int, int64_t> changes;
  for (const auto& [v, life] : lives) {
    changes[life.first] += v.type().bytes_at(batch);
    changes[life.last + 1] -= v.type().bytes_at(batch);
  }
  int64_t in_use = 0, peak = 0;
  for (const auto& [at, change] : changes) peak = std::max(peak, in_use += change);
  return peak;
}

bool is_never_overwritten(Value v, const Uses& uses) {
  if (is_collective(*root_of(v).op())) return false;
  const auto users = uses.find(root_of(v));
  return users == uses.end() ||
         std::ranges::none_of(users->second, [](const ir::Op* op) { return is_collective(*op); });
}

bool is_generated(const FusionGroup& group) {
  return group.fusible && !group.outputs.empty() &&
         (group.ops.size() > 1 || !is_alias(*group.ops.front()));
}

}  // namespace fluid
