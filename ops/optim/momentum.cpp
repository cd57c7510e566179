#include "ops/optim/optimizer.h"

namespace fluid {

OpDef momentum_op() {
  return OpDef{
      .name = "momentum",
      .doc =
          "SGD with momentum, as in PyTorch without dampening: velocity = mu * velocity + grad. "
          "The step is lr * velocity, or lr * (grad + mu * velocity) with `nesterov`.",
      .inputs = optimizer_inputs({{"velocity", "same type as param"}}),
      .attrs = {{"mu", 0.9, "momentum factor"},
                {"nesterov", false, "uses Nesterov momentum"},
                {"weight_decay", 0.0, "L2 penalty: weight_decay * param is added to the gradient"}},
      .outputs = {{"new_param", "same type as param"}, {"new_velocity", "same type as param"}},
      .infer =
          [](const InferCtx& c) {
            require_in_range(c, "mu", 0);
            require_in_range(c, "weight_decay", 0);
            return infer_optimizer(c);
          },
      .grad = NoGrad{},
      .effects = Updates{{{0, 0}, {1, 4}}},
      .amp = {Amp::kF32},
      .cost = [](const CostCtx& c) { return Cost{.flops = 4 * c.numel_out()}; },
      .in_place = {{.out = 0, .in = 0}, {.out = 1, .in = 4}},
      .lower = Map{[](const LowerCtx& c) {
        const OptimizerOperands s = optimizer_operands(c);
        const double mu = c.attr<double>("mu");
        const Expr velocity = c.in(4) * mu + s.grad;
        const Expr step = c.attr<bool>("nesterov") ? s.grad + velocity * mu : velocity;
        return std::vector{s.param - s.lr * step, velocity};
      }},
      .kernels = {},
      .version = 1,
      .internal = true,
  };
}

}  // namespace fluid
