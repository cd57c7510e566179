#include "ops/optim/optimizer.h"

namespace fluid {

OpDef adagrad_op() {
  return optimizer_def({
      .type = "Adagrad",
      .doc =
          "Adagrad (Duchi et al., 2011), like torch.optim.Adagrad: sum = sum + grad^2. The step "
          "is lr / (1 + t lr_decay) * grad / (sqrt(initial_accumulator_value + sum) + eps) after "
          "t updates. The state sum starts at 0; the state of torch starts at "
          "initial_accumulator_value.",
      .lr = 0.01,
      .settings = {{"lr_decay", 0.0, "decay of the learning rate"},
                   {"initial_accumulator_value", 0.0,
                    "added to the sum of the squared gradients, which starts at 0"},
                   {"eps", 1e-10, "added to the denominator"},
                   l2_weight_decay()},
      .states = {{"sum"}},
      .flops = 6,
      .update =
          [](const OptimizerCtx& c) {
            const Expr rate = c.lr() / ((c.update(c.dtype()) - 1.0) * c.number("lr_decay") + 1.0);
            const Expr grad = c.l2_grad();
            const Expr sum = c.state("sum") + grad * grad;
            const double initial = c.number("initial_accumulator_value");
            const Expr accumulated = initial == 0 ? sum : sum + initial;
            const Expr denominator = square_root(accumulated) + c.number("eps");
            return std::vector{c.param() - rate * (grad / denominator), sum};
          },
  });
}

}  // namespace fluid
