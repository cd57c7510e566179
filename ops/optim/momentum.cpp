#include "ops/optim/optimizer.h"

namespace fluid {

OpDef momentum_op() {
  return optimizer_def({
      .type = "Momentum",
      .doc =
          "SGD with momentum, as torch.optim.SGD without dampening: velocity = momentum * velocity "
          "+ grad. The step is lr * velocity, or lr * (grad + momentum * velocity) with "
          "`nesterov`.",
      .lr = 0.01,
      .settings = {{"momentum", 0.9, "momentum factor"},
                   {"nesterov", false, "uses Nesterov momentum"},
                   l2_weight_decay()},
      .states = {{"velocity"}},
      .flops = 4,
      .update =
          [](const OptimizerCtx& c) {
            const double momentum = c.number("momentum");
            const Expr grad = c.l2_grad();
            const Expr velocity = c.state("velocity") * momentum + grad;
            const Expr step = c.flag("nesterov") ? grad + velocity * momentum : velocity;
            return std::vector{c.param() - c.lr() * step, velocity};
          },
  });
}

}  // namespace fluid
