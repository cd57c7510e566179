#include "ops/optim/adam.h"

#include "ops/optim/optimizer.h"

namespace fluid {
namespace {

std::vector<Expr> adam_update(const OptimizerCtx& c, bool decoupled) {
  const double beta1 = c.number("beta1"), beta2 = c.number("beta2");
  const Expr grad = decoupled ? c.grad() : c.l2_grad();
  const Expr param = decoupled ? c.decayed_param() : c.param();
  const Expr t = c.update(c.dtype());
  const Expr m = moving_average(c.state("m"), grad, beta1);
  const Expr v = moving_average_of_squares(c.state("v"), grad, beta2);
  std::vector<Expr> states = {m, v};
  if (c.flag("amsgrad")) states.push_back(scalar::max(c.state("max_v"), v));
  const Expr step = c.lr() / bias_correction(beta1, t);
  const Expr scale = square_root(bias_correction(beta2, t));
  const Expr denominator = square_root(states.back()) / scale + c.number("eps");
  states.insert(states.begin(), param - step * (m / denominator));
  return states;
}

}  // namespace

OpDef adam_def(std::string type, std::string doc, bool decoupled) {
  return optimizer_def({
      .type = std::move(type),
      .doc = std::move(doc),
      .lr = 0.001,
      .settings = {{"beta1", 0.9, "decay rate of m", 0, 1},
                   {"beta2", 0.999, "decay rate of v", 0, 1},
                   {"eps", 1e-8, "added to the denominator"},
                   decoupled ? decoupled_weight_decay(0.01) : l2_weight_decay(),
                   {"amsgrad", false,
                    "divides by the square root of the largest v so far (Reddi et al., 2018)"}},
      .states = {{"m"}, {"v"}, {"max_v", "amsgrad"}},
      .flops = 12,
      .update = [decoupled](const OptimizerCtx& c) { return adam_update(c, decoupled); },
  });
}

OpDef adam_op() {
  return adam_def("Adam",
                  "Adam (Kingma and Ba, 2015), like torch.optim.Adam. m and v are moving averages "
                  "of the gradient and its square. The step is lr / (1 - beta1^t) * m / (sqrt(v) / "
                  "sqrt(1 - beta2^t) + eps).",
                  /*decoupled=*/false);
}

}  // namespace fluid
