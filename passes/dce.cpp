#include "ops/table.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

bool is_root(const ir::Op& op) {
  const Lower& lower = *def_of(op).lower;
  return std::holds_alternative<Store>(lower) || std::holds_alternative<Directive>(lower);
}

bool run(ir::Program& program, const Options&, const Target&) {
  ir::Graph& graph = program.main();
  Values roots;
  for (const ir::Output& o : graph.outputs) roots.push_back(o.value);
  std::set<const ir::Op*> live;
  for (const auto& op : graph.ops) {
    if (!is_root(*op)) continue;
    live.insert(op.get());
    roots.insert(roots.end(), op->operands.begin(), op->operands.end());
  }
  live.merge(ancestors(roots));
  const size_t before = graph.ops.size();
  graph.erase_if([&](const ir::Op& op) { return !live.contains(&op); });
  return graph.ops.size() != before;
}

}  // namespace

Pass dce_pass() {
  return {.name = "dce",
          .doc = "Drops ops that no output, store or directive depends on.",
          .needs = {},
          .gives = {},
          .run = run};
}

}  // namespace fluid
