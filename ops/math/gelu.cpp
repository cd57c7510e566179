#include <numbers>

#include "ops/elementwise.h"
#include "ops/operators.h"

namespace fluid {
namespace {

// GELU of Hendrycks and Gimpel, "Gaussian Error Linear Units", 2016: x times the cumulative
// distribution function of the standard normal distribution, computed by erf or approximated by
// tanh.
constexpr double kHalfRoot = 1 / std::numbers::sqrt2;
// Density of the standard normal distribution at 0: 1 / sqrt(2 * pi).
constexpr double kDensity = std::numbers::inv_sqrtpi * kHalfRoot;
constexpr double kTanhScale = std::numbers::inv_sqrtpi * std::numbers::sqrt2;
constexpr double kTanhCubic = 0.044715;

bool by_tanh(const Attrs& attrs) { return attrs.get<std::string>("approximate") == "tanh"; }

std::vector<Type> infer_gelu(const InferCtx& c) {
  const std::string& form = c.attr<std::string>("approximate");
  c.require(form == "none" || form == "tanh",
            "approximate must be \"none\" or \"tanh\", not \"" + form + "\"");
  return infer_float_unary(c);
}

Values gelu_grad(const GradCtx& c) {
  const Value x = c.in(0), dy = c.dout(0);
  if (!by_tanh(c.attrs())) {
    const Value scaled = x * kHalfRoot;
    const Value distribution = 0.5 * (1.0 + erf(scaled));
    return {dy * (distribution + x * kDensity * exp(-square(scaled)))};
  }
  const Value x2 = square(x);
  const Value t = tanh(kTanhScale * x * (1.0 + kTanhCubic * x2));
  const Value slope = kTanhScale * (1.0 + 3 * kTanhCubic * x2);
  return {dy * (0.5 * (1.0 + t) + 0.5 * x * (1.0 - square(t)) * slope)};
}

}  // namespace

OpDef gelu_op() {
  return OpDef{
      .name = "gelu",
      .doc =
          "x * Phi(x), where Phi is the standard normal distribution function (Hendrycks and "
          "Gimpel, 2016).",
      .inputs = {{"x", "float tensor"}},
      .attrs = {{"approximate", std::string("none"), "\"tanh\": uses the tanh approximation"}},
      .outputs = {{"y", "like x"}},
      .infer = infer_gelu,
      .grad = GradFn(gelu_grad),
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = cost_per_element(15),
      .in_place = {{0, 0}},
      .lower = Map{[](const LowerCtx& c) {
        const Expr x = c.in(0);
        const Expr inner =
            by_tanh(c.attrs())
                ? scalar::unary(ScalarOp::tanh, kTanhScale * (x + kTanhCubic * (x * x * x)))
                : scalar::unary(ScalarOp::erf, x * kHalfRoot);
        return std::vector{0.5 * x * (1.0 + inner)};
      }},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
