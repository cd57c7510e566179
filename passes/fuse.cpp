#include <algorithm>

#include "passes/collective_order.h"
#include "passes/groups.h"
#include "passes/pass.h"

namespace fluid {
namespace {

/// Clones constant ops, so that each user can be fused with its own clone.
void clone_constants(ir::Graph& graph) {
  std::set<Value> taken;
  const size_t recorded = graph.ops.size();
  // Position of each clone's user. A clone is moved to just before its user.
  std::vector<size_t> users;
  for (size_t i = 0; i < recorded; ++i) {
    ir::Op* user = graph.ops[i].get();
    for (Value& v : user->operands) {
      const ir::Op& op = *v.op();
      const bool constant = op.operands.empty() && is_groupable(op) && op.results.size() == 1;
      if (!constant || taken.insert(v).second) continue;
      ir::ScopedRecording as(graph,
                             {.role = user->role, .loc = op.loc, .scope = op.scope, .param = ""});
      v = graph.append(op.name, {}, op.attrs, {v.type()})->result();
      users.push_back(i);
    }
  }
  std::vector<std::unique_ptr<ir::Op>> ops;
  size_t clone = 0;
  for (size_t i = 0; i < recorded; ++i) {
    for (; clone < users.size() && users[clone] == i; ++clone) {
      ops.push_back(std::move(graph.ops[recorded + clone]));
    }
    ops.push_back(std::move(graph.ops[i]));
  }
  graph.ops = std::move(ops);
}

bool run_fuse(ir::Program& program, const Options& options, const Target&) {
  ir::Graph& main = program.main();
  if (collectives_before_error_sync(main)) sort_by_order_edges(main);
  if (options.fuse) clone_constants(main);
  Fusion fusion(main, options);
  if (options.fuse) fusion.run();
  mark_groups(main, fusion.groups_in_order());
  return true;
}

}  // namespace

Pass fuse_pass() {
  return {.name = "fuse",
          .doc = "Groups maps and reductions. Each group becomes one kernel.",
          .needs = {"typed"},
          .provides = {"grouped"},
          .run = run_fuse};
}

}  // namespace fluid
