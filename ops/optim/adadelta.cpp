#include "ops/optim/optimizer.h"

namespace fluid {

OpDef adadelta_op() {
  return optimizer_def({
      .type = "Adadelta",
      .doc = "Adadelta (Zeiler, 2012), like torch.optim.Adadelta: square_avg and delta_avg are "
             "moving averages of grad^2 and delta^2, where delta = sqrt(delta_avg + eps) / "
             "sqrt(square_avg + eps) * grad. The step is lr * delta.",
      .lr = 1,
      .settings = {{"rho", 0.9, "decay rate of the moving averages", 0, 1},
                   {"eps", 1e-6, "added to the moving averages"},
                   l2_weight_decay()},
      .states = {{"square_avg"}, {"delta_avg"}},
      .flops = 14,
      .update =
          [](const OptimizerCtx& c) {
            const double rho = c.number("rho"), eps = c.number("eps");
            const Expr grad = c.l2_grad();
            const Expr squares = moving_average_of_squares(c.state("square_avg"), grad, rho);
            const Expr deltas = c.state("delta_avg");
            const Expr delta = square_root(deltas + eps) / square_root(squares + eps) * grad;
            return std::vector{c.param() - c.lr() * delta, squares,
                               moving_average_of_squares(deltas, delta, rho)};
          },
  });
}

}  // namespace fluid
