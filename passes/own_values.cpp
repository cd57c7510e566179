#include "ops/functions.h"
#include "ops/source_kind.h"
#include "ops/table.h"
#include "passes/memory_plan.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

bool holds_a_source(Value v) { return source_kind(*root_of(v).op()) != SourceKind::none; }

bool run(ir::Program& program, const Options&, const Target&) {
  ir::Graph& graph = program.main();
  bool changed = false;
  auto own = [&](Value& v, const ir::Graph::Recording& as_part) {
    if (!holds_a_source(v)) return;
    ir::RecordAs as(graph, as_part);
    v = copy(v);
    changed = true;
  };
  for (ir::Output& o : graph.outputs) {
    own(o.value, {ir::Role::forward, o.value.op()->loc, o.value.op()->scope, ""});
  }
  const size_t count = graph.ops.size();
  for (size_t i = 0; i < count; ++i) {
    ir::Op& op = *graph.ops[i];
    if (!is_store(op)) continue;
    own(op.operands[0], {ir::Role::optimize, op.loc, op.scope, ""});
  }
  if (changed) move_stores_last(graph);
  return changed;
}

}  // namespace

Pass own_values_pass() {
  return {.name = "own_values",
          .doc =
              "Copies feeds and variables that leave the step as they are, as an output or into "
              "a variable: their memory is theirs.",
          .needs = {"primitive"},
          .gives = {},
          .run = run};
}

}  // namespace fluid
