#include "ops/optim/optimizer.h"

namespace fluid {
namespace {

void check_momentum(const InferCtx& c) {
  c.require(!c.attr<bool>("nesterov") ||
                (c.attr<double>("momentum") > 0 && c.attr<double>("dampening") == 0),
            "attribute 'nesterov' needs a 'momentum' above 0 and no 'dampening'");
}

/// The first velocity is the gradient, without dampening.
Expr new_velocity(const OptimizerCtx& c) {
  const double dampening = c.number("dampening");
  const Expr grad = c.l2_grad(), kept = c.state("velocity") * c.number("momentum");
  if (dampening == 0) return kept + grad;
  return scalar::select(c.is_first_update(), grad, kept + grad * (1 - dampening));
}

std::vector<Expr> momentum_update(const OptimizerCtx& c) {
  const Expr velocity = new_velocity(c);
  const Expr step = c.flag("nesterov") ? c.l2_grad() + velocity * c.number("momentum") : velocity;
  return {c.param() - c.lr() * step, velocity};
}

}  // namespace

OpDef momentum_op() {
  return optimizer_def({
      .type = "Momentum",
      .doc = "SGD with momentum, like torch.optim.SGD: velocity = momentum * velocity + (1 - "
             "dampening) * grad; the first velocity is grad. The step is lr * velocity, or lr * "
             "(grad + momentum * velocity) with `nesterov`.",
      .lr = 0.01,
      .settings = {{"momentum", 0.9, "momentum factor"},
                   {"dampening", 0.0, "dampening of the gradient in the velocity"},
                   {"nesterov", false, "uses Nesterov momentum"},
                   l2_weight_decay()},
      .states = {{"velocity"}},
      .flops = 4,
      .check = check_momentum,
      .update = momentum_update,
  });
}

}  // namespace fluid
