#include <cmath>

#include "ops/optim/optimizer.h"

namespace fluid {
namespace {

/// The factor of m / sqrt(v) after update t, in f64: the rectification term times sqrt(1 -
/// beta2^t). Returns 0 if the variance is not tractable. f32 is not precise enough for rho_t, which
/// is a difference of large numbers and decides whether the update is rectified.
Expr adaptive_factor(double beta2, const Expr& t) {
  const double limit = 2 / (1 - beta2) - 1;
  const Expr correction = bias_correction(beta2, t);
  const Expr rho = limit - 2.0 * t * (1.0 - correction) / correction;
  const Expr rectified = (rho - 4.0) * (rho - 2.0) * limit / ((limit - 4) * (limit - 2) * rho);
  return scalar::select(scalar::compare(ScalarOp::gt, rho, Expr::constant(f64, 5)),
                        square_root(rectified * correction), Expr::constant(f64, 0));
}

std::vector<Expr> radam_update(const OptimizerCtx& c) {
  const double beta1 = c.number("beta1"), beta2 = c.number("beta2");
  const bool decoupled = c.flag("decoupled_weight_decay");
  const Expr grad = decoupled ? c.grad() : c.l2_grad();
  const Expr m = moving_average(c.state("m"), grad, beta1);
  const Expr v = moving_average_of_squares(c.state("v"), grad, beta2);
  const Expr factor = scalar::cast(adaptive_factor(beta2, c.update(f64)), c.dtype());
  const Expr zero = Expr::constant(c.dtype(), 0), one = Expr::constant(c.dtype(), 1);
  const Expr adaptive = factor / (square_root(v) + c.number("eps"));
  const Expr scale = scalar::select(scalar::compare(ScalarOp::gt, factor, zero), adaptive, one);
  const Expr step = c.lr() / bias_correction(beta1, c.update(c.dtype()));
  return {(decoupled ? c.decayed_param() : c.param()) - step * m * scale, m, v};
}

}  // namespace

OpDef radam_op() {
  return optimizer_def({
      .type = "RAdam",
      .doc = "RAdam (Liu et al., \"On the variance of the adaptive learning rate and beyond\", "
             "2020), like torch.optim.RAdam: the step of adam times a rectification term, or lr / "
             "(1 - beta1^t) * m in the first updates.",
      .lr = 0.001,
      .settings = {{"beta1", 0.9, "decay rate of m", 0, 1},
                   {"beta2", 0.999, "decay rate of v", 0, 1},
                   {"eps", 1e-8, "added to the denominator"},
                   l2_weight_decay(),
                   {"decoupled_weight_decay", false,
                    "applies weight decay to the parameter, as adamw does"}},
      .states = {{"m"}, {"v"}},
      .flops = 30,
      .update = radam_update,
  });
}

}  // namespace fluid
