#include "ops/operators.h"
#include "ops/random/initializer.h"
#include "ops/record.h"
#include "passes/metrics.h"
#include "passes/outputs_add_up.h"
#include "passes/passes.h"
#include "passes/recipe.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

bool run(ir::Program& program, const Options& options, const Target&) {
  ir::Graph& graph = program.main();
  ir::Op* directive = find_directive(graph);
  if (directive == nullptr || !options.weighted) return false;
  Value weight;
  Recipe(*directive).scale_seed([&] {
    return weight =
               record_source(graph, "state", std::string(kPartWeight), Type{f64, {}, {}},
                             {{"init", std::string("constant")}, {"value", 1.0}, {kScratch, true}},
                             directive->loc);
  });
  for (ir::Output& o : graph.outputs) {
    if (!adds_up(o) || is_metric(o.value)) continue;
    const ir::Op& op = *o.value.op();
    ir::RecordAs as(graph, {ir::Role::metric, op.loc, op.scope, ""});
    o.value = o.value * cast(weight, o.value.dtype());
  }
  move_last(graph, directive);
  return true;
}

}  // namespace

Pass weigh_part_pass() {
  return {.name = "weigh_part",
          .doc =
              "Weighs the loss of a part of a batch by its samples, so that the gradients and "
              "losses of the parts add up to those of the batch.",
          .needs = {"gradients"},
          .gives = {},
          .run = run};
}

}  // namespace fluid
