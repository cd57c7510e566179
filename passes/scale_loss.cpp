#include "ops/record.h"
#include "passes/loss_scale.h"
#include "passes/pass.h"
#include "passes/recipe.h"
#include "passes/rewrite.h"

namespace fluid {

Value loss_scale_state(ir::Graph& graph, std::string_view name, DType dtype, double initial,
                       const Loc& loc) {
  if (ir::Op* known = graph.find("state", name)) return known->result();
  return record_source(graph, "state", std::string(name), Type{dtype, {}, {}},
                       {{"init", std::string("constant")}, {"value", initial}}, loc);
}

namespace {

bool run_scale_loss(ir::Program& program, const Options& options, const Target&) {
  ir::Graph& graph = program.main();
  ir::Op* directive = find_directive(graph);
  if (directive == nullptr || !options.amp || !options.amp->scales_loss()) return false;
  const Recipe recipe(*directive);
  recipe.scale_backward_seed([&] {
    return loss_scale_state(graph, recipe.state_name(kLossScale), f32,
                            options.amp->loss_scale.initial, directive->loc);
  });
  return true;
}

}  // namespace

Pass scale_loss_pass() {
  return {.name = "scale_loss",
          .doc = "Scales the seed of the gradients by the loss scale, for half precision.",
          .needs = {"gradients"},
          .provides = {},
          .run = run_scale_loss};
}

}  // namespace fluid
