#include "ops/optim/optimizer.h"

namespace fluid {

OpDef sgd_op() {
  return OpDef{
      .name = "sgd",
      .doc = "Stochastic gradient descent: param - lr * grad.",
      .inputs = optimizer_inputs(),
      .attrs = {{"weight_decay", 0.0, "L2 penalty: weight_decay * param is added to the gradient"}},
      .outputs = {{"new_param", "same type as param"}},
      .infer =
          [](const InferCtx& c) {
            require_in_range(c, "weight_decay", 0);
            return infer_optimizer(c);
          },
      .grad = NoGrad{},
      .effects = Updates{{{0, 0}}},
      .amp = {Amp::kF32},
      .cost = [](const CostCtx& c) { return Cost{.flops = 2 * c.numel_out()}; },
      .in_place = {{.out = 0, .in = 0}},
      .lower = Map{[](const LowerCtx& c) {
        const OptimizerOperands s = optimizer_operands(c);
        return std::vector{s.param - s.lr * s.grad};
      }},
      .kernels = {},
      .version = 1,
      .internal = true,
  };
}

}  // namespace fluid
