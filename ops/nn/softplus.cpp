#include "ops/elementwise.h"
#include "ops/operators.h"

namespace fluid {
namespace {

std::vector<Type> infer_softplus(const InferCtx& c) {
  require_finite(c, "beta");
  require_not_nan(c, "threshold");
  c.require(c.attr<double>("beta") != 0, "attribute 'beta' must not be 0");
  return infer_float_unary(c);
}

Values softplus_grad(const GradCtx& c) {
  const Value x = c.in(0), dy = c.dout(0), scaled = x * c.attr<double>("beta");
  const Value linear = greater(scaled, scalar_like(x, c.attr<double>("threshold")));
  return {where(linear, dy, dy * sigmoid(scaled))};
}

// log(1 + e^z) = max(z, 0) + log1p(e^-|z|), which does not overflow.
std::vector<Expr> softplus_body(const LowerCtx& c) {
  const Expr x = c.in(0), scaled = x * c.attr<double>("beta");
  const auto number = [&](double value) { return Expr::constant(x.dtype(), value); };
  const Expr tail = scalar::unary(
      ScalarOp::log1p, scalar::unary(ScalarOp::exp, -scalar::unary(ScalarOp::abs, scaled)));
  const Expr smooth = (scalar::max(scaled, number(0)) + tail) / c.attr<double>("beta");
  const Expr linear = scalar::compare(ScalarOp::gt, scaled, number(c.attr<double>("threshold")));
  return {scalar::select(linear, x, smooth)};
}

}  // namespace

OpDef softplus_op() {
  return OpDef{
      .name = "softplus",
      .doc = "log(1 + exp(`beta` * x)) / `beta`, or x where `beta` * x is above `threshold`.",
      .inputs = {{"x", "float tensor"}},
      .attrs = {{"beta", 1.0, "sharpness; not 0"},
                {"threshold", 20.0, "the function is linear above it"}},
      .outputs = {{"y", "like x"}},
      .infer = infer_softplus,
      .grad = GradFn(softplus_grad),
      .effects = Pure{},
      .amp = Amp::kF32,
      .cost = cost_per_element(25),
      .in_place = {{0, 0}},
      .lower = Map{softplus_body},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
