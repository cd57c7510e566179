#include "ir/error.h"
#include "ops/source_kind.h"
#include "passes/backward.h"
#include "passes/collective_order.h"
#include "passes/pass.h"
#include "passes/recipe.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

/// The parameters to train, in the order in which they were recorded.
std::vector<ir::Op*> trainable_parameters(const ir::Graph& graph) {
  std::vector<ir::Op*> parameters;
  for (const auto& op : graph.ops) {
    const bool trainable =
        source_kind(*op) == SourceKind::parameter && op->attrs.get_or<bool>("trainable", true);
    if (trainable) parameters.push_back(op.get());
  }
  return parameters;
}

bool run_append_backward(ir::Program& program, const Options&, const Target&) {
  ir::Graph& graph = program.main();
  ir::Op* train = find_directive(graph);
  if (train == nullptr) return false;
  const Value loss = train->operands.at(0);
  const std::vector<ir::Op*> parameters = trainable_parameters(graph);
  Values xs;
  for (ir::Op* param : parameters) xs.push_back(param->result());
  Backward backward(graph, {loss}, xs, ir::Role::backward, "a parameter reaches the loss");
  const Value seed = backward.seed_with_ones(loss);
  backward.run();
  std::vector<std::string> names;
  Values values;
  train->operands.push_back(seed);
  for (ir::Op* param : parameters) {
    const Value gradient = backward.gradient(param->result());
    if (!gradient) continue;
    names.push_back(param->symbol);
    values.push_back(gradient);
    train->operands.push_back(gradient);
    if (gradient.op()->param.empty()) gradient.op()->param = param->symbol;
  }
  if (names.empty()) {
    throw UserError(train->loc,
                    "the loss does not depend on any trainable parameter: nothing to train");
  }
  train->attrs.set("parameters", names);
  move_op_last(graph, train);
  if (const auto waits = last_collectives(graph, values))
    Recipe(*train).set_last_collectives(*waits);
  return true;
}

}  // namespace

Pass append_backward_pass() {
  return {.name = "append_backward",
          .doc = "Appends the gradients of the loss with respect to the trainable parameters.",
          .needs = {"typed"},
          .gives = {"gradients"},
          .run = run_append_backward};
}

}  // namespace fluid
