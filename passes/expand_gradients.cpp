#include "ir/error.h"
#include "ops/functions.h"
#include "ops/table.h"
#include "passes/backward.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

/// Appends the ops that compute the results of a `gradients` op. All earlier `gradients` ops have
/// already been replaced, so this op may differentiate through them.
Values append_gradients(ir::Graph& graph, const ir::Op& op) {
  const Value y = op.operands.at(0);
  const Values xs(op.operands.begin() + 1, op.operands.end());
  Backward backward(graph, {y}, xs, op.role, "a gradient is taken");
  backward.seed_with_ones(y);
  backward.run();
  Values gradients;
  for (size_t i = 0; i < xs.size(); ++i) {
    Value gradient = backward.gradient(xs[i]);
    if (!gradient && backward.is_ancestor(xs[i])) {
      gradient = fill(graph, {.type = xs[i].type(), .value = 0}, op.loc);
    }
    gradients.push_back(gradient);
    if (gradient) continue;
    throw UserError(op.loc, op.name + ": y does not depend on xs[" + std::to_string(i) + "], " +
                                xs[i].type().str());
  }
  return gradients;
}

bool run_expand_gradients(ir::Program& program, const Options&, const Target&) {
  ir::Graph& graph = program.main();
  return rewrite_ops(graph, [&](const ir::Op& op) {
    const bool is_derivative = std::holds_alternative<GradientsOp>(*def_of(op).lower);
    return is_derivative ? append_gradients(graph, op) : Values();
  });
}

}  // namespace

Pass expand_gradients_pass() {
  return {.name = "expand_gradients",
          .doc = "Replaces gradients that the program takes by the ops that compute them.",
          .needs = {"typed"},
          .provides = {},
          .run = run_expand_gradients};
}

}  // namespace fluid
