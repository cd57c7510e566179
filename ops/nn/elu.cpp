#include "ops/nn/elu.h"

#include "ops/elementwise.h"
#include "ops/operators.h"

namespace fluid {
namespace {

Values grad_of_elu(const GradCtx& c, const EluCoefficients& k) {
  const Value x = c.in(0), dy = c.dout(0), zero = scalar_like(x, 0);
  // where() discards the exponential of positive x; minimum() prevents its overflow.
  const Value slope = exp(minimum(x, zero) * k.input_scale) * (k.scale * k.alpha * k.input_scale);
  return {where(less_equal(x, zero), dy * slope, dy * k.scale)};
}

Expr elu_of(const Expr& x, const EluCoefficients& k) {
  const Expr exponential = scalar::unary(ScalarOp::expm1, x * k.input_scale) * (k.scale * k.alpha);
  const Expr positive = scalar::compare(ScalarOp::gt, x, Expr::constant(x.dtype(), 0));
  return scalar::select(positive, x * k.scale, exponential);
}

}  // namespace

OpDef elu_def(std::string name, std::string doc, std::vector<AttrDef> attrs,
              std::function<std::vector<Type>(const InferCtx&)> infer,
              std::function<EluCoefficients(const Attrs&)> coefficients) {
  return OpDef{
      .name = std::move(name),
      .doc = std::move(doc),
      .inputs = {{"x", "float tensor"}},
      .attrs = std::move(attrs),
      .outputs = {{"y", "like x"}},
      .infer = std::move(infer),
      .grad = GradFn(
          [coefficients](const GradCtx& c) { return grad_of_elu(c, coefficients(c.attrs())); }),
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = cost_per_element(13),
      .in_place = {{0, 0}},
      .lower = Map{[coefficients](const LowerCtx& c) {
        return std::vector{elu_of(c.in(0), coefficients(c.attrs()))};
      }},
      .kernels = {},
      .version = 1,
  };
}

OpDef elu_op() {
  return elu_def(
      "elu",
      "x where x is positive, else `alpha` * (exp(x) - 1) (Clevert, Unterthiner and Hochreiter, "
      "2015).",
      {{"alpha", 1.0, "negated limit of the result at minus infinity"}},
      [](const InferCtx& c) {
        require_finite(c, "alpha");
        return infer_float_unary(c);
      },
      [](const Attrs& attrs) { return EluCoefficients{.alpha = attrs.get<double>("alpha")}; });
}

}  // namespace fluid
