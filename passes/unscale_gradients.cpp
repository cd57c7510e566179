#include "ops/internal_functions.h"
#include "ops/operators.h"
#include "ops/record.h"
#include "passes/loss_scale.h"
#include "passes/pass.h"
#include "passes/recipe.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

/// A bool scalar: whether all elements of all gradients are finite.
Value all_finite(const Recipe& recipe) {
  Value bad;
  for (size_t i = 0; i < recipe.parameters().size(); ++i) {
    const Value faults = internal::count_nonfinite(recipe.gradient(i));
    bad = bad ? bad + faults : faults;
  }
  bad = recipe.all_reduce_sums({bad})[0];
  return equal(bad, scalar_like(bad, 0));
}

/// Records the stores of the loss scale and the step counts for the next step. As in PyTorch's
/// GradScaler, the scale grows after `interval` consecutive steps with finite gradients and backs
/// off after a step with non-finite gradients. The scale is clamped to [`floor`, `ceiling`].
void store_next_scale(ir::Graph& graph, const LossScale& s, Value scale, const Recipe& recipe) {
  const Value step_predicate = recipe.step_predicate();
  const Loc& loc = recipe.directive().loc;
  const Value good = loss_scale_state(graph, recipe.state_name(kGoodSteps), i64, 0, loc);
  const Value skipped = loss_scale_state(graph, recipe.state_name(kSkippedSteps), i64, 0, loc);
  const Value run = good + 1;
  const Value grows = equal(run, scalar_like(run, static_cast<double>(s.interval)));
  const Value zero = scalar_like(run, 0);
  if (s.dynamic) {
    const Value grown = minimum(scale * s.growth, scalar_like(scale, s.ceiling));
    const Value backed_off = maximum(scale * s.backoff, scalar_like(scale, s.floor));
    record_store(graph, scale.op()->symbol,
                 where(step_predicate, where(grows, grown, scale), backed_off), loc);
  }
  record_store(graph, good.op()->symbol, where(step_predicate, where(grows, zero, run), zero), loc);
  record_store(graph, skipped.op()->symbol, where(step_predicate, skipped, skipped + 1), loc);
}

bool run_unscale_gradients(ir::Program& program, const Options& options, const Target&) {
  ir::Graph& graph = program.main();
  ir::Op* directive = find_directive(graph);
  if (directive == nullptr || !options.amp || !options.amp->scales_loss()) return false;
  const LossScale& settings = options.amp->loss_scale;
  const Recipe recipe(*directive);
  ir::ScopedRecording as(graph, recipe.recording());
  const Value scale =
      loss_scale_state(graph, recipe.state_name(kLossScale), f32, settings.initial, directive->loc);
  const Value unscale = 1.0 / scale;
  recipe.replace_gradients([&](Value g) { return g * cast(unscale, g.dtype()); });
  recipe.set_step_predicate(all_finite(recipe));
  store_next_scale(graph, settings, scale, recipe);
  move_op_last(graph, directive);
  return true;
}

}  // namespace

Pass unscale_gradients_pass() {
  return {.name = "unscale_gradients",
          .doc = "Unscales gradients, skips non-finite steps, updates the dynamic loss scale.",
          .needs = {"gradients"},
          .provides = {},
          .run = run_unscale_gradients};
}

}  // namespace fluid
