// Cycle test of kernel fusion: groups a and b cannot merge if a third group depends on a, and b
// depends on the third. Topological levels bound the search between groups that are close in the
// graph. Landmarks (ops with precomputed reachability) answer most queries about distant groups.

#include <algorithm>
#include <queue>
#include <unordered_set>

#include "passes/fusion.h"

namespace fluid {
namespace {

constexpr size_t kLandmarks = 64;
// Gap between initial levels, so that raising a level rarely raises the levels of users.
constexpr int64_t kGap = 1 << 20;

}  // namespace

/// Divides the ops, in graph order, into at most 64 intervals. The landmark of an interval is its
/// op on the longest dependency chain. Computes `reached_by` and `reaches` of the groups.
void Fusion::place_landmarks() {
  const size_t n = groups_.size();
  std::vector<int64_t> above(n), chain(n);
  for (size_t i = 0; i < n; ++i) {
    if (!graph_.ops[i]->operands.empty()) groups_[i]->level = static_cast<int64_t>(i + 1) * kGap;
    for (const Value& v : graph_.ops[i]->operands) {
      above[i] = std::max(above[i], above[positions_.at(v.op())] + 1);
    }
  }
  for (size_t i = n; i-- > 0;) {
    for (const Value& v : graph_.ops[i]->operands) {
      int64_t& below = chain[positions_.at(v.op())];
      below = std::max(below, chain[i] + 1);
    }
  }
  for (size_t i = 0; i < n; ++i) chain[i] += above[i];
  const size_t stretch = n / kLandmarks + 1;
  for (size_t begin = 0; begin < n; begin += stretch) {
    const auto from = chain.begin() + static_cast<ptrdiff_t>(begin);
    const auto to = chain.begin() + static_cast<ptrdiff_t>(std::min(begin + stretch, n));
    const auto best = static_cast<size_t>(std::max_element(from, to) - chain.begin());
    groups_[best]->reached_by = groups_[best]->reaches = uint64_t{1} << landmarks_.size();
    landmarks_.push_back(graph_.ops[best].get());
  }
  for (size_t i = 0; i < n; ++i) {
    for (const FusionGroup* producer : producers(*groups_[i])) {
      groups_[i]->reached_by |= producer->reached_by;
    }
  }
  for (size_t i = n; i-- > 0;) {
    for (FusionGroup* producer : producers(*groups_[i])) producer->reaches |= groups_[i]->reaches;
  }
}

std::vector<FusionGroup*> Fusion::producers(const FusionGroup& group) const {
  std::vector<FusionGroup*> producers;
  for (const ir::Op* op : group.ops) {
    for (const Value& v : op->operands) {
      FusionGroup* producer = group_of(v.op());
      if (producer != &group) producers.push_back(producer);
    }
    const auto awaited = order_predecessors_.find(op);
    if (awaited == order_predecessors_.end()) continue;
    for (const ir::Op* first : awaited->second) producers.push_back(group_of(first));
  }
  return producers;
}

std::vector<FusionGroup*> Fusion::users(const FusionGroup& group) const {
  std::vector<FusionGroup*> users;
  for (const ir::Op* op : group.ops) {
    for (size_t i = 0; i < op->results.size(); ++i) {
      const auto uses = uses_.find(Value(const_cast<ir::Op*>(op), static_cast<int>(i)));
      if (uses == uses_.end()) continue;
      for (const ir::Op* use : uses->second) {
        FusionGroup* user = group_of(use);
        if (user != &group) users.push_back(user);
      }
    }
    const auto waiting = order_successors_.find(op);
    if (waiting == order_successors_.end()) continue;
    for (const ir::Op* next : waiting->second) users.push_back(group_of(next));
  }
  return users;
}

bool Fusion::makes_cycle(const FusionGroup* a, const FusionGroup* b) const {
  const FusionGroup* first = a->level < b->level ? a : b;
  const FusionGroup* last = first == a ? b : a;
  const uint64_t between = first->reaches & last->reached_by;
  for (size_t i = 0; i < landmarks_.size(); ++i) {
    if ((between >> i & 1) == 0) continue;
    const FusionGroup* group = group_of(landmarks_[i]);
    if (group != first && group != last) return true;
  }
  return has_indirect_path(first, last);
}

/// Whether a dependency path leads from `first` to `last` through another group. Bidirectional
/// search: if there is no path, one of the two searches often ends early.
bool Fusion::has_indirect_path(const FusionGroup* first, const FusionGroup* last) const {
  std::unordered_map<const FusionGroup*, bool> from_last;
  std::vector<const FusionGroup*> fronts[2];
  const auto meets = [&](const std::vector<FusionGroup*>& next, bool end) {
    return std::ranges::any_of(next, [&](const FusionGroup* group) {
      if (group->level <= first->level || group->level >= last->level) return false;
      const auto [seen, added] = from_last.emplace(group, end);
      if (added) fronts[end].push_back(group);
      return seen->second != end;
    });
  };
  if (meets(users(*first), false) || meets(producers(*last), true)) return true;
  for (bool end = false; !fronts[0].empty() && !fronts[1].empty(); end = !end) {
    const FusionGroup* group = fronts[end].back();
    fronts[end].pop_back();
    if (meets(end ? producers(*group) : users(*group), end)) return true;
  }
  return false;
}

/// Updates the level and the landmark bits of `merged`, which now contains the ops of `other`. The
/// new level is the lowest that the producers allow, so that few users need a higher level.
void Fusion::update_after_merge(FusionGroup* merged, const FusionGroup& other) const {
  merged->reached_by |= other.reached_by;
  merged->reaches |= other.reaches;
  merged->level = std::min(merged->level, other.level);
  for (const FusionGroup* producer : producers(*merged)) {
    merged->level = std::max(merged->level, producer->level + 1);
  }
  raise_user_levels(merged);
}

/// Raises the levels of the groups that depend on `group`, so that each group is above all of its
/// producers. Visits each group at most once, in ascending order of the old levels.
void Fusion::raise_user_levels(FusionGroup* group) const {
  using Entry = std::pair<int64_t, FusionGroup*>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> lifted;
  std::unordered_set<const FusionGroup*> known = {group};
  lifted.emplace(group->level, group);
  while (!lifted.empty()) {
    const FusionGroup* producer = lifted.top().second;
    lifted.pop();
    for (FusionGroup* user : users(*producer)) {
      if (user->level > producer->level) continue;
      if (known.insert(user).second) lifted.emplace(user->level, user);
      user->level = producer->level + 1;
    }
  }
}

}  // namespace fluid
