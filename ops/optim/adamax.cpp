#include "ops/optim/optimizer.h"

namespace fluid {

OpDef adamax_op() {
  return optimizer_def({
      .type = "Adamax",
      .doc =
          "Adamax (Kingma and Ba, 2015), like torch.optim.Adamax: m is the moving average of the "
          "gradient, u = max(beta2 * u, |grad| + eps). The step is lr / (1 - beta1^t) * m / u.",
      .lr = 0.002,
      .settings = {{"beta1", 0.9, "decay rate of m", 0, 1},
                   {"beta2", 0.999, "decay rate of u", 0, 1},
                   {"eps", 1e-8, "added to the absolute value of the gradient"},
                   l2_weight_decay()},
      .states = {{"m"}, {"u"}},
      .flops = 10,
      .update =
          [](const OptimizerCtx& c) {
            const Expr grad = c.l2_grad();
            const Expr m = moving_average(c.state("m"), grad, c.number("beta1"));
            const Expr magnitude = scalar::unary(ScalarOp::abs, grad) + c.number("eps");
            const Expr u = scalar::max(c.state("u") * c.number("beta2"), magnitude);
            const Expr step = c.lr() / bias_correction(c.number("beta1"), c.update(c.dtype()));
            return std::vector{c.param() - step * (m / u), m, u};
          },
  });
}

}  // namespace fluid
