#include "passes/pass.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

/// The main graph and the graphs that are reachable from it through attributes of ops, such as the
/// bodies of fused ops.
std::set<const ir::Graph*> live_graphs(const ir::Program& program) {
  std::set<const ir::Graph*> live = {&program.main()};
  std::vector<const ir::Graph*> todo = {&program.main()};
  while (!todo.empty()) {
    const ir::Graph* graph = todo.back();
    todo.pop_back();
    for (const auto& op : graph->ops) {
      for (const auto& [name, attr] : op->attrs) {
        const auto* ref = std::get_if<GraphRef>(&attr);
        if (ref == nullptr) continue;
        const ir::Graph* body = program.find(ref->name);
        if (live.insert(body).second) todo.push_back(body);
      }
    }
  }
  return live;
}

bool drop_graphs(ir::Program& program) {
  const std::set<const ir::Graph*> live = live_graphs(program);
  return program.erase_graphs([&](const ir::Graph& g) { return !live.contains(&g); });
}

bool run_dce(ir::Program& program, const Options&, const Target&) {
  const bool ops = erase_dead_ops(program.main());
  // Must follow erase_dead_ops(), because an erased op may have held the last reference to a graph.
  return drop_graphs(program) || ops;
}

}  // namespace

Pass dce_pass() {
  return {.name = "dce",
          .doc = "Removes ops that no output, store, collective or directive needs (dead code).",
          .needs = {},
          .provides = {},
          .run = run_dce};
}

}  // namespace fluid
