#include <algorithm>
#include <map>
#include <set>

#include "ops/source_kind.h"
#include "passes/groups.h"
#include "passes/memory_plan.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

// Minimum size in bytes of the results of a repeated kernel.
constexpr int64_t kMinRepeatedBytes = 1 << 20;

bool is_pure_map(const ir::Op* op) {
  const OpDef& def = def_of(*op);
  return std::holds_alternative<Alias>(*def.lower) ||
         (std::holds_alternative<Map>(*def.lower) && std::holds_alternative<Pure>(*def.effects) &&
          checked_operands(*op).empty());
}

/// Rematerialization of whole kernels: runs an elementwise kernel a second time, before late
/// users of its result, if this lowers the peak memory. Example: backward reads the results of
/// batch_norm and relu, which can be computed again from the result of the convolution. Another
/// example is a half-precision cast of a parameter. Both runs use the same code, so the results are
/// bitwise equal.
class RepeatKernels {
 public:
  RepeatKernels(ir::Graph& graph, std::vector<FusionGroup>& groups, int64_t batch)
      : graph_(graph), groups_(groups), batch_(batch) {
    analyze();
  }

  /// Returns whether a kernel was repeated.
  bool run() {
    bool changed = false;
    for (size_t i = 0; i < groups_.size(); ++i) {
      const FusionGroup& group = groups_[i];
      if (!is_generated(group) || group.outputs.size() != 1) continue;
      if (bytes(group.outputs[0]) < kMinRepeatedBytes ||
          !std::ranges::all_of(group.ops, is_pure_map)) {
        continue;
      }
      changed |= try_repeat(static_cast<int>(i));
    }
    return changed;
  }

 private:
  int64_t bytes(Value v) const { return v.type().bytes_at(batch_); }
  const FusionGroup& group(int i) const { return groups_[static_cast<size_t>(i)]; }

  void analyze() {
    position_.clear();
    for (size_t i = 0; i < groups_.size(); ++i) {
      for (const ir::Op* op : groups_[i].ops) position_[op] = static_cast<int>(i);
    }
    uses_ = graph_.uses();
    lives_ = live_ranges_of(graph_, groups_);
    peak_ = peak_bytes(lives_, batch_);
  }

  /// Indices of the groups that read `v`. Empty if `v` is not in the transient region, or if an
  /// Alias op outside of generated kernels reads it.
  std::set<int> users(Value v) const {
    std::set<int> users;
    const auto uses = uses_.find(v);
    if (uses == uses_.end() || !lives_.contains(v)) return {};
    for (const ir::Op* op : uses->second) {
      const int at = position_.at(op);
      const FusionGroup& by = group(at);
      const bool alias = is_alias(*op);
      if (alias && !is_generated(by)) return {};
      users.insert(at);
    }
    return users;
  }

  /// Index of the first late user, the user after the longest gap between consecutive users.
  static int first_late(const std::set<int>& users) {
    int late = *users.begin(), longest = 0, before = late;
    for (const int user : users) {
      if (user - before > longest) {
        longest = user - before;
        late = user;
      }
      before = user;
    }
    return late;
  }

  Values inputs(const FusionGroup& kernel) const {
    std::set<Value> inputs;
    for (const ir::Op* op : kernel.ops) {
      for (const Value& v : op->operands) {
        const auto at = position_.find(v.op());
        if (at == position_.end() || &group(at->second) != &kernel) inputs.insert(v);
      }
    }
    return {inputs.begin(), inputs.end()};
  }

  /// Whether no op overwrites `v` before group `at` runs.
  bool is_readable(Value v, int at) const {
    const ir::Op& root = *root_of(v).op();
    if (!is_variable(root)) return is_never_overwritten(v, uses_);
    return std::ranges::none_of(graph_.ops, [&](const auto& op) {
      return is_store(*op) && op->symbol == root.symbol &&
             position_.at(root_of(op->operands[0]).op()) < at;
    });
  }

  /// Peak memory in bytes if `v` is freed after group `last_early` and recomputed from `inputs`
  /// before group `late`.
  int64_t peak_with(Value v, const Values& inputs, int last_early, int late) const {
    LiveRanges lives = lives_;
    lives.at(v).last = last_early;
    for (const Value& input : inputs) {
      const auto life = lives.find(root_of(input));
      if (life != lives.end()) life->second.last = std::max(life->second.last, late);
    }
    const int64_t otherwise = peak_bytes(lives, batch_);
    return std::max(otherwise, in_use(lives, lives_.at(v).last, late) + bytes(v));
  }
  /// Peak memory in bytes while the groups from `first` to `last` run.
  int64_t in_use(LiveRanges lives, int last, int first) const {
    std::erase_if(lives, [&](const auto& entry) {
      return entry.second.first > last || entry.second.last < first;
    });
    for (auto& [v, life] : lives) life.first = std::max(life.first, first);
    return peak_bytes(lives, batch_);
  }

  bool try_repeat(int from) {
    const Value v = group(from).outputs[0];
    const std::set<int> by = users(v);
    if (by.size() < 2) return false;
    const int late = first_late(by);
    const int last_early = *std::prev(by.find(late));
    const Values read = inputs(group(from));
    const bool readable =
        std::ranges::all_of(read, [&](const Value& input) { return is_readable(input, late); });
    if (!readable || 2 * (peak_ - peak_with(v, read, last_early, late)) < bytes(v)) {
      return false;
    }
    repeat(from, late);
    return true;
  }

  void repeat(int from, int late) {
    const Value v = group(from).outputs[0];
    FusionGroup again;
    again.fusible = true;
    std::map<Value, Value> copies;
    again.ops = append_copies(graph_, group(from).ops, ir::Role::backward, copies);
    again.outputs = {copies.at(v)};
    for (ir::Op* op : uses_.at(v)) {
      if (position_.at(op) < late) continue;
      std::ranges::replace(op->operands, v, copies.at(v));
    }
    groups_.insert(groups_.begin() + late, std::move(again));
    analyze();
  }

  ir::Graph& graph_;
  std::vector<FusionGroup>& groups_;
  int64_t batch_;
  std::map<const ir::Op*, int> position_;
  Uses uses_;
  LiveRanges lives_;
  int64_t peak_ = 0;
};

bool run_repeat_kernels(ir::Program& program, const Options& options, const Target& target) {
  if (!target.runs_repeat_kernels()) return false;
  std::vector<FusionGroup> groups = extract_groups(program.main());
  const bool changed = RepeatKernels(program.main(), groups, options.batch).run();
  mark_groups(program.main(), groups);
  return changed;
}

}  // namespace

Pass repeat_kernels_pass() {
  return {.name = "repeat_kernels",
          .doc = "Runs kernels of maps a second time where this lowers the peak memory.",
          .needs = {"grouped"},
          .provides = {},
          .run = run_repeat_kernels};
}

}  // namespace fluid
