#include "ops/optim/optimizer.h"

namespace fluid {
namespace {

std::vector<Expr> lars_update(const OptimizerCtx& c) {
  const Expr param_norm = c.scalar_operand(0), grad_norm = c.scalar_operand(1);
  const Expr scaled = param_norm * c.number("trust_coefficient");
  const double decay = c.number("weight_decay");
  const Expr rate =
      c.lr() * ratio_or_1(param_norm, grad_norm, scaled / (grad_norm + param_norm * decay));
  const Expr velocity = c.state("velocity") * c.number("momentum") + rate * c.l2_grad();
  return {c.param() - velocity, velocity};
}

}  // namespace

OpDef lars_op() {
  return optimizer_def({
      .type = "LARS",
      .doc =
          "LARS (You et al., \"Large batch training of convolutional networks\", 2017): velocity "
          "= momentum * velocity + rate * (grad + weight_decay * param), param -= velocity. rate "
          "= lr * trust_coefficient * |param| / (|grad| + weight_decay * |param|), with L2 norms "
          "of the whole parameter; rate = lr if a norm is 0.",
      .lr = 0.1,
      .settings = {{"momentum", 0.9, "momentum factor"},
                   {"trust_coefficient", 0.001, "factor of the rate"},
                   l2_weight_decay()},
      .states = {{"velocity"}},
      .scalars = {{.name = "param_norm", .doc = "L2 norm of the parameter", .norm_of = "param"},
                  {.name = "grad_norm", .doc = "L2 norm of the gradient", .norm_of = "grad"}},
      .flops = 12,
      .update = lars_update,
  });
}

}  // namespace fluid
