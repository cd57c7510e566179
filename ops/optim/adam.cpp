#include "ops/optim/adam.h"

#include <cmath>

#include "ops/optim/optimizer.h"

namespace fluid {
namespace {

// Returns 1 - beta^t, computed by expm1. In the first steps beta^t is close to 1, so the f32
// subtraction would lose precision by cancellation.
Expr bias_correction(double beta, const Expr& t) {
  if (beta == 0) return Expr::constant(t.dtype(), 1);
  return -scalar::unary(ScalarOp::expm1, t * std::log(beta));
}

/// Returns the new parameter and the new moments m and v.
std::vector<Expr> adam_step(const LowerCtx& c, bool decoupled) {
  const OptimizerOperands s = optimizer_operands(c, /*l2_decay=*/!decoupled);
  const double beta1 = c.attr<double>("beta1"), beta2 = c.attr<double>("beta2");
  const Expr t = scalar::cast(c.in(3) + 1.0, s.param.dtype());
  const Expr m = c.in(4) + (s.grad - c.in(4)) * (1 - beta1);
  const Expr v = c.in(5) * beta2 + s.grad * s.grad * (1 - beta2);
  const Expr step = s.lr / bias_correction(beta1, t);
  const Expr scale = scalar::unary(ScalarOp::sqrt, bias_correction(beta2, t));
  const Expr denominator = scalar::unary(ScalarOp::sqrt, v) / scale + c.attr<double>("eps");
  const double decay = decoupled ? c.attr<double>("weight_decay") : 0;
  const Expr param = decay == 0 ? s.param : s.param * (1.0 - s.lr * decay);
  return {param - step * (m / denominator), m, v};
}

}  // namespace

OpDef adam_def(std::string name, std::string doc, bool decoupled) {
  return OpDef{
      .name = std::move(name),
      .doc = std::move(doc),
      .inputs = optimizer_inputs({{"m", "same type as param"}, {"v", "same type as param"}}),
      .attrs = {{"beta1", 0.9, "decay rate of m"},
                {"beta2", 0.999, "decay rate of v"},
                {"eps", 1e-8, "added to the denominator"},
                {"weight_decay", decoupled ? 0.01 : 0.0,
                 decoupled ? "decoupled weight decay: lr * weight_decay * param is subtracted from "
                             "the parameter"
                           : "L2 penalty: weight_decay * param is added to the gradient"}},
      .outputs = {{"new_param", "same type as param"},
                  {"new_m", "same type as param"},
                  {"new_v", "same type as param"}},
      .infer =
          [](const InferCtx& c) {
            require_in_range(c, "beta1", 0, 1);
            require_in_range(c, "beta2", 0, 1);
            require_in_range(c, "eps", 0);
            require_in_range(c, "weight_decay", 0);
            return infer_optimizer(c);
          },
      .grad = NoGrad{},
      .effects = Updates{{{0, 0}, {1, 4}, {2, 5}}},
      .amp = {Amp::kF32},
      .cost = [](const CostCtx& c) { return Cost{.flops = 12 * c.numel_out()}; },
      .in_place = {{.out = 0, .in = 0}, {.out = 1, .in = 4}, {.out = 2, .in = 5}},
      .lower = Map{[decoupled](const LowerCtx& c) { return adam_step(c, decoupled); }},
      .kernels = {},
      .version = 1,
      .internal = true,
  };
}

OpDef adam_op() {
  return adam_def("adam",
                  "Adam (Kingma and Ba, 2015), with PyTorch's rounding order. m and v are moving "
                  "averages of the gradient and its square. The step is lr / (1 - beta1^t) * m / "
                  "(sqrt(v) / sqrt(1 - beta2^t) + eps).",
                  /*decoupled=*/false);
}

}  // namespace fluid
