#include "ops/optim/optimizer.h"

namespace fluid {
namespace {

std::vector<Expr> rmsprop_update(const OptimizerCtx& c) {
  const double alpha = c.number("alpha"), momentum = c.number("momentum");
  const Expr grad = c.l2_grad();
  const Expr squares = moving_average_of_squares(c.state("square_avg"), grad, alpha);
  std::vector<Expr> states = {squares};
  Expr variance = squares;
  if (c.flag("centered")) {
    const Expr mean = moving_average(c.state("grad_avg"), grad, alpha);
    variance = squares - mean * mean;
    states.push_back(mean);
  }
  Expr step = grad / (square_root(variance) + c.number("eps"));
  if (momentum != 0) {
    step = c.state("velocity") * momentum + step;
    states.push_back(step);
  }
  states.insert(states.begin(), c.param() - c.lr() * step);
  return states;
}

}  // namespace

OpDef rmsprop_op() {
  return optimizer_def({
      .type = "RMSprop",
      .doc = "RMSprop (Hinton, 2012), like torch.optim.RMSprop: square_avg is the moving average "
             "of grad^2. The step is lr * grad / (sqrt(square_avg) + eps), with momentum.",
      .lr = 0.01,
      .settings = {{"alpha", 0.99, "decay rate of the moving averages", 0, 1},
                   {"eps", 1e-8, "added to the denominator"},
                   {"momentum", 0.0, "momentum factor"},
                   {"centered", false,
                    "divides by the standard deviation: subtracts the square of grad_avg, the "
                    "moving average of the gradient (Graves, 2013)"},
                   l2_weight_decay()},
      .states = {{"square_avg"}, {"grad_avg", "centered"}, {"velocity", "momentum"}},
      .flops = 9,
      .update = rmsprop_update,
  });
}

}  // namespace fluid
