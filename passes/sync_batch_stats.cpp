#include <set>

#include "ops/operators.h"
#include "ops/record.h"
#include "ops/table.h"
#include "passes/batch_partition.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

/// SyncBatchNorm: expands the ops that use batch statistics into elementwise ops and reductions,
/// and all-reduces the sums over samples. append_backward, a later pass, differentiates the
/// expansion.
class StatisticsSync {
 public:
  explicit StatisticsSync(ir::Graph& graph) : graph_(graph) {}

  bool run() {
    find_statistics_ops();
    if (statistics_ops_.empty()) return false;
    while (rewrite_ops(graph_, [&](ir::Op& op) { return expansion(op); })) {
    }
    find_counts();
    rewrite_ops(graph_, [&](ir::Op& op) { return all_reduced(op); });
    number_collectives();
    return true;
  }

 private:
  void find_statistics_ops() {
    BatchPartitionAnalysis analysis;
    for (const auto& op : graph_.ops) {
      if (analysis.computes_batch_statistics(*op)) statistics_ops_.insert(op.get());
      const bool reads = std::ranges::any_of(
          op->operands, [&](Value v) { return statistics_ops_.contains(v.op()); });
      if (reads && std::holds_alternative<Updates>(*def_of(*op).effects)) updates_.insert(op.get());
    }
  }

  Values expansion(ir::Op& op) {
    const auto* expand = std::get_if<Expand>(&*def_of(op).lower);
    if (expand == nullptr || statistics_ops_.erase(&op) == 0) return {};
    const size_t first = graph_.ops.size();
    Values values = expand->ops(ExpandCtx(op));
    for (size_t i = first; i < graph_.ops.size(); ++i) statistics_ops_.insert(graph_.ops[i].get());
    return values;
  }

  static bool is_count(const BatchPartition& p) {
    return p == BatchPartition{BatchPartition::same, 1};
  }

  /// Finds the ops that compute the number of samples. These ops have no operands, so a single
  /// all_reduce can sum all counts before the statistics are computed.
  void find_counts() {
    BatchPartitionAnalysis analysis;
    const auto add = [&](ir::Op& op) {
      if (!op.operands.empty() || !is_count(analysis.partition_of(op.result()))) return;
      if (!count_like(op)) counts_.emplace_back(&op, Value());
    };
    for (const auto& op : graph_.ops) {
      if (statistics_ops_.contains(op.get())) add(*op);
      if (!updates_.contains(op.get())) continue;
      for (const Value& v : op->operands) add(*v.op());
    }
  }

  /// An op that counts samples, and the sum of its results over all processes.
  using Count = std::pair<const ir::Op*, Value>;
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

  Values all_reduced(ir::Op& op) {
    if (updates_.contains(&op)) {
      for (Value& v : op.operands) {
        if (const Count* count = count_like(*v.op())) v = count->second;
      }
    }
    if (!statistics_ops_.contains(&op)) return {};
    if (!counts_.empty() && !counts_.front().second) all_reduce_counts(op.loc);
    if (const Count* count = count_like(op)) return {count->second};
    const BatchPartition p = analysis_.partition_of(op.result());
    if (p == BatchPartition{} || p.kind == BatchPartition::per_sample) return {};
    check(p == BatchPartition{BatchPartition::total, 0}, op.name + " cannot be all-reduced");
    const Value own = record(graph_, op.name, op.operands, op.attrs, op.loc)[0];
    return record(graph_, "all_reduce", {own}, {}, op.loc);
  }

  /// Gives the n collectives of the forward pass the order numbers -n to -1. The gradient of
  /// collective -k will get number k - 1, so that the backward pass runs its collectives in reverse
  /// order.
  void number_collectives() {
    std::vector<ir::Op*> collectives;
    for (const auto& op : graph_.ops) {
      if (is_collective(*op)) collectives.push_back(op.get());
    }
    auto next = -static_cast<int64_t>(collectives.size());
    for (ir::Op* op : collectives) op->attrs.set("bucket", next++);
  }

  ir::Graph& graph_;
  /// Ops that use batch statistics. An expanded op is replaced by the ops of its expansion.
  std::set<const ir::Op*> statistics_ops_;
  /// Ops that update variables (running statistics) from batch statistics.
  std::set<const ir::Op*> updates_;
  std::vector<Count> counts_;
  BatchPartitionAnalysis analysis_;
};

bool run_sync_batch_stats(ir::Program& program, const Options& options, const Target&) {
  ir::Graph& graph = program.main();
  if (find_directive(graph) == nullptr || !options.sync_bn || !options.uses_collectives())
    return false;
  return StatisticsSync(graph).run();
}

}  // namespace

Pass sync_batch_stats_pass() {
  return {.name = "sync_batch_stats",
          .doc = "All-reduces the batch statistics of batch_norm (SyncBatchNorm).",
          .needs = {"typed"},
          .provides = {},
          .run = run_sync_batch_stats};
}

}  // namespace fluid
