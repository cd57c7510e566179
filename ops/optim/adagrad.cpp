#include "ops/optim/optimizer.h"

namespace fluid {

OpDef adagrad_op() {
  return OpDef{
      .name = "adagrad",
      .doc =
          "Adagrad (Duchi et al., 2011), as torch.optim.Adagrad: sum = sum + grad^2. The step is "
          "lr / (1 + t lr_decay) * grad / (sqrt(sum) + eps) after t updates.",
      .inputs = optimizer_inputs({{"sum", "same type as param"}}),
      .attrs = {{"lr_decay", 0.0, "decay of the learning rate"},
                {"eps", 1e-10, "added to the denominator"},
                {"weight_decay", 0.0, "L2 penalty: weight_decay * param is added to the gradient"}},
      .outputs = {{"new_param", "same type as param"}, {"new_sum", "same type as param"}},
      .infer =
          [](const InferCtx& c) {
            require_in_range(c, "lr_decay", 0);
            require_in_range(c, "eps", 0);
            require_in_range(c, "weight_decay", 0);
            return infer_optimizer(c);
          },
      .grad = NoGrad{},
      .effects = Updates{{{0, 0}, {1, 4}}},
      .amp = {Amp::kF32},
      .cost = [](const CostCtx& c) { return Cost{.flops = 6 * c.numel_out()}; },
      .in_place = {{.out = 0, .in = 0}, {.out = 1, .in = 4}},
      .lower = Map{[](const LowerCtx& c) {
        const OptimizerOperands s = optimizer_operands(c);
        const Expr t = scalar::cast(c.in(3), s.param.dtype());
        const Expr rate = s.lr / (t * c.attr<double>("lr_decay") + 1.0);
        const Expr sum = c.in(4) + s.grad * s.grad;
        const Expr denominator = scalar::unary(ScalarOp::sqrt, sum) + c.attr<double>("eps");
        return std::vector{s.param - rate * (s.grad / denominator), sum};
      }},
      .kernels = {},
      .version = 1,
      .internal = true,
  };
}

}  // namespace fluid
