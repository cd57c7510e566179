#include <set>

#include "ops/operators.h"
#include "ops/record.h"
#include "ops/table.h"
#include "passes/batch_partition.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

/// Expands the ops that use batch statistics into maps and reductions, and all-reduces their sums
/// over samples. append_backward then derives the gradients.
class StatisticsSync {
 public:
  explicit StatisticsSync(ir::Graph& graph) : graph_(graph) {}

  bool run() {
    find();
    if (parts_.empty()) return false;
    while (rewrite_ops(graph_, [&](ir::Op& op) { return expansion(op); })) {
    }
    find_counts();
    rewrite_ops(graph_, [&](ir::Op& op) { return shared(op); });
    number();
    return true;
  }

 private:
  void find() {
    BatchPartitionAnalysis analysis;
    for (const auto& op : graph_.ops) {
      if (analysis.computes_batch_statistics(*op)) parts_.insert(op.get());
      const bool reads =
          std::ranges::any_of(op->operands, [&](Value v) { return parts_.contains(v.op()); });
      if (reads && std::holds_alternative<Updates>(*def_of(*op).effects)) updates_.insert(op.get());
    }
  }

  Values expansion(ir::Op& op) {
    const auto* expand = std::get_if<Expand>(&*def_of(op).lower);
    if (expand == nullptr || parts_.erase(&op) == 0) return {};
    const size_t first = graph_.ops.size();
    Values values = expand->ops(ExpandCtx(op));
    for (size_t i = first; i < graph_.ops.size(); ++i) parts_.insert(graph_.ops[i].get());
    return values;
  }

  static bool is_count(const BatchPartition& p) {
    return p == BatchPartition{BatchPartition::same, 1};
  }

  /// Finds the ops that count samples. They have no operands, so one early all_reduce takes all
  /// counts.
  void find_counts() {
    BatchPartitionAnalysis analysis;
    const auto add = [&](ir::Op& op) {
      if (!op.operands.empty() || !is_count(analysis.of(op.result()))) return;
      if (!count_like(op)) counts_.emplace_back(&op, Value());
    };
    for (const auto& op : graph_.ops) {
      if (parts_.contains(op.get())) add(*op);
      if (!updates_.contains(op.get())) continue;
      for (const Value& v : op->operands) add(*v.op());
    }
  }

  using Count = std::pair<const ir::Op*, Value>;  ///< (op that counts, total over processes)
  Count* count_like(const ir::Op& op) {
    const auto found = std::ranges::find_if(counts_, [&](const Count& c) {
      return c.first->name == op.name && c.first->attrs == op.attrs;
    });
    return found == counts_.end() ? nullptr : &*found;
  }

  void all_reduce_counts(const Loc& loc) {
    Values own;
    for (const auto& [count, total] : counts_) {
      own.push_back(cast(record(graph_, count->name, {}, count->attrs, count->loc)[0], f64));
    }
    const Values sums = record(graph_, "all_reduce", own, {}, loc);
    for (size_t i = 0; i < sums.size(); ++i) {
      counts_[i].second = cast(sums[i], counts_[i].first->results[0].type.dtype);
    }
  }

  Values shared(ir::Op& op) {
    if (updates_.contains(&op)) {
      for (Value& v : op.operands) {
        if (const Count* count = count_like(*v.op())) v = count->second;
      }
    }
    if (!parts_.contains(&op)) return {};
    if (!counts_.empty() && !counts_.front().second) all_reduce_counts(op.loc);
    if (const Count* count = count_like(op)) return {count->second};
    const BatchPartition p = analysis_.of(op.result());
    if (p == BatchPartition{} || p.kind == BatchPartition::rows) return {};
    check(p == BatchPartition{BatchPartition::total, 0}, op.name + " cannot be all-reduced");
    const Value own = record(graph_, op.name, op.operands, op.attrs, op.loc)[0];
    return record(graph_, "all_reduce", {own}, {}, op.loc);
  }

  /// Numbers the collectives of forward from -n to -1. Backward runs theirs in reverse.
  void number() {
    std::vector<ir::Op*> exchanges;
    for (const auto& op : graph_.ops) {
      if (is_collective(*op)) exchanges.push_back(op.get());
    }
    auto next = -static_cast<int64_t>(exchanges.size());
    for (ir::Op* op : exchanges) op->attrs.set("bucket", next++);
  }

  ir::Graph& graph_;
  std::set<const ir::Op*> parts_;    ///< ops that use statistics, and their expansions
  std::set<const ir::Op*> updates_;  ///< ops that update variables from statistics
  std::vector<Count> counts_;
  BatchPartitionAnalysis analysis_;
};

bool run_sync_batch_stats(ir::Program& program, const Options& options, const Target&) {
  ir::Graph& graph = program.main();
  if (find_directive(graph) == nullptr || !options.sync_bn || !options.exchanges()) return false;
  return StatisticsSync(graph).run();
}

}  // namespace

Pass sync_batch_stats_pass() {
  return {.name = "sync_batch_stats",
          .doc = "All-reduces the batch statistics of batch_norm (SyncBatchNorm).",
          .needs = {"typed"},
          .gives = {},
          .run = run_sync_batch_stats};
}

}  // namespace fluid
