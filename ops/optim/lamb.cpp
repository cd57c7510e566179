#include "ops/optim/optimizer.h"

namespace fluid {
namespace {

struct Moments {
  Expr m, v;
};

Moments new_moments(const OptimizerCtx& c) {
  return {moving_average(c.state("m"), c.grad(), c.number("beta1")),
          moving_average_of_squares(c.state("v"), c.grad(), c.number("beta2"))};
}

/// The update before scaling by the learning rate and the trust ratio.
Expr unscaled_step(const OptimizerCtx& c, const Moments& moments) {
  const Expr t = c.update(c.dtype());
  const Expr m = moments.m / bias_correction(c.number("beta1"), t);
  const Expr v = moments.v / bias_correction(c.number("beta2"), t);
  const Expr step = m / (square_root(v) + c.number("eps"));
  const double decay = c.number("weight_decay");
  return decay == 0 ? step : step + c.param() * decay;
}

std::vector<Expr> lamb_update(const OptimizerCtx& c) {
  const Moments moments = new_moments(c);
  const Expr param_norm = c.scalar_operand(0), step_norm = c.scalar_operand(1);
  const Expr ratio = ratio_or_1(param_norm, step_norm, param_norm / step_norm);
  return {c.param() - c.lr() * ratio * unscaled_step(c, moments), moments.m, moments.v};
}

OptimizerDef lamb() {
  return {
      .type = "LAMB",
      .doc =
          "LAMB (You et al., \"Large batch optimization for deep learning: training BERT in 76 "
          "minutes\", 2020). step = m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps) + "
          "weight_decay * param. The step is scaled by lr * |param| / |step|, with L2 norms of "
          "the whole parameter; by lr if a norm is 0.",
      .lr = 0.001,
      .settings = {{"beta1", 0.9, "decay rate of m", 0, 1},
                   {"beta2", 0.999, "decay rate of v", 0, 1},
                   {"eps", 1e-6, "added to the denominator"},
                   {"weight_decay", 0.01, "weight_decay * param is added to the step"}},
      .states = {{"m"}, {"v"}},
      .scalars = {{.name = "param_norm", .doc = "L2 norm of the parameter", .norm_of = "param"},
                  {.name = "step_norm", .doc = "L2 norm of lamb_step", .norm_of = "lamb_step"}},
      .flops = 16,
      .update = lamb_update,
  };
}

}  // namespace

OpDef lamb_op() { return optimizer_def(lamb()); }

OpDef lamb_step_op() {
  return optimizer_value_def(
      lamb(), "lamb_step",
      "The step of lamb before it is scaled by the learning rate and the norms.",
      [](const OptimizerCtx& c) { return unscaled_step(c, new_moments(c)); });
}

}  // namespace fluid
