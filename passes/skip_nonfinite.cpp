#include "ops/operators.h"
#include "passes/pass.h"
#include "passes/recipe.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

bool run_skip_nonfinite(ir::Program& program, const Options& options, const Target&) {
  ir::Graph& graph = program.main();
  ir::Op* directive = find_directive(graph);
  if (directive == nullptr || !skips_on_nonfinite_loss(options)) return false;
  const Recipe recipe(*directive);
  ir::ScopedRecording as(graph, recipe.recording());
  recipe.set_step_predicate(is_finite(directive->operands.at(0)));
  move_op_last(graph, directive);
  return true;
}

}  // namespace

Pass skip_nonfinite_pass() {
  return {.name = "skip_nonfinite",
          .doc = "With --check-finite, skips the update of a step whose loss is not finite.",
          .needs = {"gradients"},
          .provides = {},
          .run = run_skip_nonfinite};
}

}  // namespace fluid
