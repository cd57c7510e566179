#include "ops/operators.h"
#include "ops/record.h"
#include "ops/table.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

// Number of blocks that keeps a CPU busy. It does not depend on the number of threads, because
// generated code must give the same bits for any number.
constexpr int64_t kMinBlocks = 16;

/// Replaces pairs of ops by the op that computes the results of both.
class CombineOps {
 public:
  CombineOps(ir::Graph& graph, int64_t batch) : graph_(graph), batch_(batch) {
    for (const auto& op : graph.ops) {
      if (def_of(*op).combined) find_pair(*op);
    }
  }
  bool run() {
    return rewrite_ops(graph_, [this](ir::Op& op) { return replacements(op); });
  }

 private:
  using Pair = std::array<const ir::Op*, 2>;

  void find_pair(const ir::Op& op) {
    const CombinedOp& combined = *def_of(op).combined;
    std::vector<Type> in;
    for (const Value& v : op.operands) in.push_back(v.type());
    if (combined.blocks(in).at(batch_) < kMinBlocks) return;
    for (const auto& other : graph_.ops) {
      if (other->name != combined.with || other->operands != op.operands ||
          other->attrs != op.attrs || other->role != op.role) {
        continue;
      }
      pairs_[&op] = pairs_[other.get()] = {&op, other.get()};
    }
  }

  Values replacements(ir::Op& op) {
    const auto found = pairs_.find(&op);
    if (found == pairs_.end()) return {};
    const Pair& pair = found->second;
    Values& results = results_[pair[0]];
    if (results.empty()) {
      results = record(graph_, def_of(*pair[0]).combined->op, op.operands, op.attrs, op.loc);
    }
    const bool second = &op == pair[1];
    const size_t first = second ? pair[0]->results.size() : 0;
    Values own;
    for (const ir::Result& result : op.results) {
      own.push_back(cast(results.at(first + own.size()), result.type.dtype));
    }
    return own;
  }

  ir::Graph& graph_;
  int64_t batch_;
  std::map<const ir::Op*, Pair> pairs_;      ///< keys: both ops of each pair
  std::map<const ir::Op*, Values> results_;  ///< of the combined op, by the first op of the pair
};

bool run_combine_ops(ir::Program& program, const Options& options, const Target& target) {
  return target.runs_combine_ops() && CombineOps(program.main(), options.batch).run();
}

}  // namespace

Pass combine_ops_pass() {
  return {.name = "combine_ops",
          .doc = "Combines pairs of ops that share most of their work into one op.",
          .needs = {"typed"},
          .provides = {},
          .run = run_combine_ops};
}

}  // namespace fluid
