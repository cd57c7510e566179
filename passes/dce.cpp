#include "ops/table.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

/// Whether the op is live even without readers: a store, a directive or a collective. All processes
/// must call a collective, even a process that does not use the result.
bool is_root(const ir::Op& op) {
  const Lower& lower = *def_of(op).lower;
  return std::holds_alternative<Store>(lower) || std::holds_alternative<Directive>(lower) ||
         std::holds_alternative<CollectiveOp>(lower);
}

/// Erases dead ops. Keeps the op that declares a variable if a store writes the variable, because
/// the initialiser is an attribute of the declaration.
bool drop_ops(ir::Graph& graph) {
  Values roots = output_values(graph);
  const auto variables = variables_by_name(graph);
  std::set<const ir::Op*> live;
  for (const auto& op : graph.ops) {
    if (!is_root(*op)) continue;
    live.insert(op.get());
    roots.insert(roots.end(), op->operands.begin(), op->operands.end());
    const auto written = is_store(*op) ? variables.find(op->symbol) : variables.end();
    if (written != variables.end()) live.insert(written->second);
  }
  live.merge(ancestors(roots));
  return erase_all_except(graph, live);
}

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
  const bool ops = drop_ops(program.main());
  // Must follow drop_ops(), because an erased op may have held the last reference to a graph.
  return drop_graphs(program) || ops;
}

}  // namespace

Pass dce_pass() {
  return {.name = "dce",
          .doc = "Removes ops that no output, store, collective or directive needs (dead code).",
          .needs = {},
          .gives = {},
          .run = run_dce};
}

}  // namespace fluid
