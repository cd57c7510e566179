#include <algorithm>

#include "passes/compose.h"
#include "passes/exchange.h"
#include "passes/fusion.h"
#include "passes/pass.h"
#include "passes/recompute.h"
#include "passes/repeat_kernels.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

/// Clones constants so that each reader computes its own copy.
void clone_constants(ir::Graph& graph) {
  std::set<Value> taken;
  const size_t recorded = graph.ops.size();
  std::vector<size_t> readers;  // readers of the clones; a clone is placed before its reader
  for (size_t i = 0; i < recorded; ++i) {
    ir::Op* reader = graph.ops[i].get();
    for (Value& v : reader->operands) {
      const ir::Op& op = *v.op();
      const bool constant = op.operands.empty() && is_groupable(op) && op.results.size() == 1;
      if (!constant || taken.insert(v).second) continue;
      ir::RecordAs as(graph, {.role = reader->role, .loc = op.loc, .scope = op.scope, .param = ""});
      v = graph.append(op.name, {}, op.attrs, {v.type()})->result();
      readers.push_back(i);
    }
  }
  std::vector<std::unique_ptr<ir::Op>> ops;
  size_t clone = 0;
  for (size_t i = 0; i < recorded; ++i) {
    for (; clone < readers.size() && readers[clone] == i; ++clone) {
      ops.push_back(std::move(graph.ops[recorded + clone]));
    }
    ops.push_back(std::move(graph.ops[i]));
  }
  graph.ops = std::move(ops);
}

bool is_alias(const FusionGroup& group) {
  return group.ops.size() == 1 && std::holds_alternative<Alias>(*def_of(*group.ops.front()).lower);
}

bool run_fuse(ir::Program& program, const Options& options, const Target& target) {
  ir::Graph& main = program.main();
  if (collectives_before_error_sync(main)) sort_by_collectives(main);
  if (options.fuse) clone_constants(main);
  Fusion fusion(main, options);
  if (options.fuse) fusion.run();
  std::vector<FusionGroup> groups = fusion.ordered();
  if (options.fuse) recompute(main, groups, options.batch);
  if (options.fuse && target.repeats_kernels()) repeat_kernels(main, groups, options.batch);
  const Uses uses = main.uses();
  std::vector<const ir::Op*> order;
  bool changed = false;
  for (const FusionGroup& group : groups) {
    if (!group.fusible || is_alias(group)) {
      order.push_back(group.ops.front());
    } else if (!group.outputs.empty()) {
      ir::Op* fused = append_fused(program, group.ops, group.outputs, group.ops.back()->param);
      for (size_t i = 0; i < group.outputs.size(); ++i) {
        redirect(main, uses, group.outputs[i], fused->result(static_cast<int>(i)));
      }
      order.push_back(fused);
      changed = true;
    }
  }
  std::map<const ir::Op*, std::unique_ptr<ir::Op>> ops;
  for (auto& op : main.ops) {
    const ir::Op* key = op.get();
    ops[key] = std::move(op);
  }
  main.ops.clear();
  for (const ir::Op* op : order) main.ops.push_back(std::move(ops.at(op)));
  return changed;
}

}  // namespace

Pass fuse_pass() {
  return {.name = "fuse",
          .doc = "Gathers maps and reductions into kernels, each a `fused` op with a body graph.",
          .needs = {"typed"},
          .gives = {"fused"},
          .run = run_fuse};
}

}  // namespace fluid
