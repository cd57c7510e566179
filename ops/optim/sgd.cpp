#include "ops/optim/optimizer.h"

namespace fluid {

OpDef sgd_op() {
  return optimizer_def({
      .type = "SGD",
      .doc = "Stochastic gradient descent: param - lr * grad.",
      .lr = 0.01,
      .settings = {l2_weight_decay()},
      .flops = 2,
      .update = [](const OptimizerCtx& c) { return std::vector{c.param() - c.lr() * c.l2_grad()}; },
  });
}

}  // namespace fluid
