#include <cmath>

#include "ops/optim/optimizer.h"

namespace fluid {
namespace {

OptimizerSetting beta1_setting() { return {"beta1", 0.9, "decay rate of m", 0, 1}; }
OptimizerSetting momentum_decay_setting() {
  return {"momentum_decay", 0.004, "decay of the momentum schedule"};
}

/// The momentum coefficient mu_t of update `t`.
Expr mu(double beta1, double momentum_decay, const Expr& t) {
  const Expr decayed = scalar::unary(ScalarOp::exp, t * (momentum_decay * std::log(0.96)));
  return beta1 * (1.0 - 0.5 * decayed);
}

std::vector<Expr> nadam_update(const OptimizerCtx& c) {
  const double beta1 = c.number("beta1"), beta2 = c.number("beta2");
  const bool decoupled = c.flag("decoupled_weight_decay");
  const Expr grad = decoupled ? c.grad() : c.l2_grad();
  const Expr t = c.update(c.dtype());
  const Expr m = moving_average(c.state("m"), grad, beta1);
  const Expr v = moving_average_of_squares(c.state("v"), grad, beta2);
  const Expr denominator = square_root(v / bias_correction(beta2, t)) + c.number("eps");
  const Expr now = mu(beta1, c.number("momentum_decay"), t);
  const Expr next = mu(beta1, c.number("momentum_decay"), t + 1.0);
  const Expr product = c.scalar_operand(0);
  const Expr of_grad = c.lr() * (1.0 - now) / (1.0 - product);
  const Expr of_m = c.lr() * next / (1.0 - product * next);
  const Expr param = decoupled ? c.decayed_param() : c.param();
  return {param - (of_grad * grad + of_m * m) / denominator, m, v};
}

}  // namespace

OpDef nadam_op() {
  return optimizer_def({
      .type = "NAdam",
      .doc = "NAdam (Dozat, \"Incorporating Nesterov momentum into Adam\", 2016), like "
             "torch.optim.NAdam: adam with Nesterov momentum, whose factor is mu = beta1 * (1 - "
             "0.96^(t * momentum_decay) / 2) in update t.",
      .lr = 0.002,
      .settings = {beta1_setting(),
                   {"beta2", 0.999, "decay rate of v", 0, 1},
                   {"eps", 1e-8, "added to the denominator"},
                   momentum_decay_setting(),
                   l2_weight_decay(),
                   {"decoupled_weight_decay", false,
                    "applies weight decay to the parameter, as adamw does"}},
      .states = {{"m"}, {"v"}},
      .scalars = {{.name = "mu_product",
                   .doc = "the product of mu over all updates, this one included",
                   .sequence = "nadam_mu_product"}},
      .flops = 40,
      .update = nadam_update,
  });
}

OpDef nadam_mu_product_op() {
  return OpDef{
      .name = "nadam_mu_product",
      .doc = "Multiplies the product of nadam's momentum factors by the factor of this update.",
      .inputs = {{"mu_product", "f64 scalar"},
                 {"update", "i64 scalar: number of completed updates"}},
      .attrs = {{"beta1", beta1_setting().fallback, beta1_setting().doc},
                {"momentum_decay", momentum_decay_setting().fallback,
                 momentum_decay_setting().doc}},
      .outputs = {{"new_mu_product", "f64 scalar"}},
      .infer =
          [](const InferCtx& c) {
            c.require(is_float(c.in(0).dtype) && c.in(0).shape.empty(),
                      "the product must be a float scalar, got " + c.in(0).str());
            c.require(c.in(1) == Type{i64, {}, {}},
                      "the update counter must be an i64 scalar, got " + c.in(1).str());
            require_in_range(c, "beta1", 0, 1);
            require_in_range(c, "momentum_decay", 0);
            return std::vector{c.in(0)};
          },
      .grad = NoGrad{},
      .effects = Updates{{{0, 0}}},
      .amp = {Amp::kF32},
      .cost = [](const CostCtx&) { return Cost{.flops = 15}; },
      .in_place = {{.out = 0, .in = 0}},
      .lower = Map{[](const LowerCtx& c) {
        const Expr product = c.in(0);
        const Expr t = scalar::cast(c.in(1) + 1.0, product.dtype());
        return std::vector{product *
                           mu(c.attr<double>("beta1"), c.attr<double>("momentum_decay"), t)};
      }},
      .kernels = {},
      .version = 1,
      .internal = true,
  };
}

}  // namespace fluid
