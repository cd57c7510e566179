#include "ops/elementwise.h"
#include "ops/operators.h"

namespace fluid {
namespace {

std::vector<Type> infer_hard_sigmoid(const InferCtx& c) {
  require_finite(c, "alpha");
  require_finite(c, "beta");
  c.require(c.attr<double>("alpha") > 0, "attribute 'alpha' must be positive");
  return infer_float_unary(c);
}

Values hard_sigmoid_grad(const GradCtx& c) {
  const double alpha = c.attr<double>("alpha"), beta = c.attr<double>("beta");
  const Value x = c.in(0), dy = c.dout(0);
  const Value inside = logical_and(greater(x, scalar_like(x, -beta / alpha)),
                                   less(x, scalar_like(x, (1 - beta) / alpha)));
  return {where(inside, dy * alpha, scalar_like(dy, 0))};
}

}  // namespace

OpDef hard_sigmoid_op() {
  return OpDef{
      .name = "hard_sigmoid",
      .doc = "min(max(`alpha` * x + `beta`, 0), 1).",
      .inputs = {{"x", "float tensor"}},
      .attrs = {{"alpha", 1.0 / 6, "slope, positive"}, {"beta", 0.5, "value at 0"}},
      .outputs = {{"y", "like x"}},
      .infer = infer_hard_sigmoid,
      .grad = GradFn(hard_sigmoid_grad),
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = cost_per_element(4),
      .in_place = {{0, 0}},
      .lower = Map{[](const LowerCtx& c) {
        const Expr line = c.in(0) * c.attr<double>("alpha") + c.attr<double>("beta");
        const auto number = [&](double value) { return Expr::constant(line.dtype(), value); };
        return std::vector{scalar::min(scalar::max(line, number(0)), number(1))};
      }},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
