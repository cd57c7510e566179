#include "ops/scan.h"
#include "ops/source_kind.h"
#include "ops/table.h"
#include "passes/memory_plan.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

/// A value or workspace with its range, live from op `first` to op `last` (positions in the graph).
/// While it is live, only an in-place result may overwrite the range.
struct LiveValue {
  Value value;
  Range range;
  int first;
  int last;
};

class Checker {
 public:
  Checker(const MemoryPlan& plan, const ir::Graph& graph, const Options& options)
      : plan_(plan), graph_(graph), options_(options), end_(static_cast<int>(graph.ops.size())) {}

  void run() {
    collect();
    check_rejections();
    for (size_t a = 0; a < live_.size(); ++a) {
      check_bounds(live_[a]);
      for (size_t b = a + 1; b < live_.size(); ++b) check_pair(live_[a], live_[b]);
    }
  }

 private:
  void collect() {
    std::map<Value, size_t> place;
    for (int i = 0; i < end_; ++i) {
      ir::Op& op = *graph_.ops[static_cast<size_t>(i)];
      for (Value v : op.operands) live_[place.at(v)].last = i;
      if (is_store(op)) live_[place.at(op.operands[0])].last = end_;
      const bool source = source_kind(op) != SourceKind::none;
      for (size_t r = 0; r < op.results.size(); ++r) {
        const Value v = op.result(static_cast<int>(r));
        const int first = source ? -1 : i;
        const bool feed = source_kind(op) == SourceKind::feed;
        place[v] = live_.size();
        // A collective may run until the end of the step.
        const bool lasts = feed || is_collective(op);
        live_.push_back({v, plan_.values.at(v), first, lasts ? end_ : first});
      }
      if (auto it = plan_.workspaces.find(&op); it != plan_.workspaces.end()) {
        live_.push_back({Value(), it->second, i, is_store(op) ? end_ : i});
      }
    }
    for (const ir::Output& o : graph_.outputs) live_[place.at(o.value)].last = end_;
    // The live range of the operand of an Alias includes the live range of the result.
    for (size_t i = live_.size(); i-- > 0;) {
      const Value v = live_[i].value;
      if (!v || !is_alias(*v.op())) continue;
      int& last = live_[place.at(v.op()->operands[0])].last;
      last = std::max(last, live_[i].last);
    }
  }

  static std::string name(const LiveValue& l) {
    return (l.value ? l.value.op()->name + " " + l.value.op()->symbol : "workspace ") + " (live " +
           std::to_string(l.first) + "-" + std::to_string(l.last) + ")";
  }

  void check_rejections() const {
    for (const Value v : results_before_error_sync(graph_)) {
      check(plan_.values.at(v).region != Region::state,
            "plan: '" + v.op()->name + "' changes a variable before its data may be rejected");
    }
  }

  void check_bounds(const LiveValue& l) const {
    const int64_t size = plan_.bytes(l.range.region);
    check(l.range.offset >= 0 && l.range.offset % kAlign == 0 &&
              (l.range.bytes == 0 || l.range.offset + l.range.bytes <= size),
          "plan: " + name(l) + " lies outside its region");
    check(
        !l.value || l.range.bytes >= l.value.type().bytes_at(options_.batch) || l.range.bytes == 0,
        "plan: " + name(l) + " is larger than its range");
  }

  void check_pair(const LiveValue& a, const LiveValue& b) const {
    const bool same_bytes = a.range.region == b.range.region &&
                            a.range.offset < b.range.offset + b.range.bytes &&
                            b.range.offset < a.range.offset + a.range.bytes;
    if (!same_bytes || a.last < b.first || b.last < a.first) return;
    if (a.value && b.value && root_of(a.value) == root_of(b.value)) return;
    check(overwrites(a, b) || overwrites(b, a),
          "plan: " + name(a) + " and " + name(b) + " overlap");
  }

  /// Whether `late` overwrites `early` in place. The op that computes `late` must be the last
  /// user of `early`, and its in-place pairs must allow the overwrite.
  bool overwrites(const LiveValue& early, const LiveValue& late) const {
    if (!early.value || !late.value || early.last != late.first) return false;
    if (early.range.offset != late.range.offset || early.range.bytes != late.range.bytes)
      return false;
    const ir::Op& op = *late.value.op();
    bool read = false;
    for (size_t i = 0; i < op.operands.size(); ++i) {
      if (root_of(op.operands[i]) != root_of(early.value)) continue;
      read = true;
      if (!allows_in_place(op, late.value.index(), static_cast<int>(i))) return false;
    }
    return read;
  }

  bool allows_in_place(const ir::Op& op, int out, int in) const {
    return std::ranges::any_of(pairs_.pairs_of(op),
                               [&](const InPlace& p) { return p.out == out && p.in == in; });
  }

  const MemoryPlan& plan_;
  const ir::Graph& graph_;
  const Options& options_;
  int end_;
  std::vector<LiveValue> live_;
  mutable InPlacePairs pairs_;
};

}  // namespace

void verify_plan(const MemoryPlan& plan, const ir::Program& final_program, const Options& options) {
  Checker(plan, final_program.main(), options).run();
  for (const ir::Graph* body : scan_bodies(final_program.main())) {
    Checker(memory_plan(*body, options), *body, options).run();
  }
}

}  // namespace fluid
