#include "ops/optim/optimizer.h"

namespace fluid {
namespace {

/// Returns the sign of x: -1, 0 or 1; NaN for NaN.
Expr sign(const Expr& x) {
  const Expr zero = Expr::constant(x.dtype(), 0), one = Expr::constant(x.dtype(), 1);
  const Expr of_zero_or_nan = scalar::select(scalar::compare(ScalarOp::lt, x, zero), -one, x);
  return scalar::select(scalar::compare(ScalarOp::gt, x, zero), one, of_zero_or_nan);
}

}  // namespace

OpDef lion_op() {
  return optimizer_def({
      .type = "Lion",
      .doc =
          "Lion (Chen et al., \"Symbolic discovery of optimization algorithms\", 2023). The step "
          "is lr * sign(beta1 * m + (1 - beta1) * grad), then m = beta2 * m + (1 - beta2) * "
          "grad.",
      .lr = 1e-4,
      .settings = {{"beta1", 0.9, "weight of m in the step", 0, 1},
                   {"beta2", 0.99, "decay rate of m", 0, 1},
                   decoupled_weight_decay(0)},
      .states = {{"m"}},
      .flops = 10,
      .update =
          [](const OptimizerCtx& c) {
            const Expr m = c.state("m");
            const Expr step = sign(moving_average(m, c.grad(), c.number("beta1")));
            return std::vector{c.decayed_param() - c.lr() * step,
                               moving_average(m, c.grad(), c.number("beta2"))};
          },
  });
}

}  // namespace fluid
