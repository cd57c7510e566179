#include <array>
#include <cmath>
#include <numbers>
#include <span>

#include "ops/random/draw.h"
#include "ops/random/initializer.h"

namespace fluid {
namespace {

constexpr double kMaxSigmas = 5;  // maximum |low - mean| and |high - mean|, in standard deviations

Expr polynomial(const Expr& x, std::span<const double> coefficients) {
  Expr value = Expr::constant(x.dtype(), coefficients[0]);
  for (const double c : coefficients.subspan(1)) value = value * x + c;
  return value;
}

/// The inverse of erf on (-1, 1), in f64. Refines the approximation of Giles, "Approximating the
/// erfinv function", 2010, whose relative error is below 1e-6, by a step of Newton's method.
Expr inverse_erf(const Expr& p) {
  static constexpr std::array<double, 9> kCentral = {
      2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
      -0.00125372503, -0.00417768164, 0.246640727,    1.50140941};
  static constexpr std::array<double, 9> kTail = {-0.000200214257, 0.000100950558, 0.00134934322,
                                                  -0.00367342844,  0.00573950773,  -0.0076224613,
                                                  0.00943887047,   1.00167406,     2.83297682};
  const Expr w = -scalar::unary(ScalarOp::log, (1.0 - p) * (p + 1.0));
  const Expr is_central = scalar::compare(ScalarOp::lt, w, Expr::constant(f64, 5));
  const Expr root = scalar::unary(ScalarOp::sqrt, scalar::max(w, Expr::constant(f64, 5)));
  const Expr x =
      scalar::select(is_central, polynomial(w - 2.5, kCentral), polynomial(root - 3.0, kTail)) * p;
  const Expr slope = scalar::unary(ScalarOp::exp, -(x * x)) * (2 * std::numbers::inv_sqrtpi);
  return x - (scalar::unary(ScalarOp::erf, x) - p) / slope;
}

void check_truncated_normal(const InferCtx& c) {
  const double mean = c.attr<double>("mean"), deviation = c.attr<double>("std");
  const double low = c.attr<double>("low"), high = c.attr<double>("high");
  c.require(std::isfinite(deviation) && deviation > 0, "attribute 'std' must be above 0");
  c.require(low < high, "attribute 'low' must be below 'high'");
  c.require(low >= mean - kMaxSigmas * deviation && high <= mean + kMaxSigmas * deviation,
            "attributes 'low' and 'high' must lie within 5 'std' of 'mean'");
}

Expr truncated_normal(const LowerCtx& c) {
  const double mean = c.attr<double>("mean"), deviation = c.attr<double>("std");
  const double low = c.attr<double>("low"), high = c.attr<double>("high");
  const double root = std::numbers::sqrt2 * deviation;
  const double first = std::erf((low - mean) / root), last = std::erf((high - mean) / root);
  const Expr index = linear_index(c, c.out_type().shape, c.out_vars());
  const Expr u = uniform_from_bits(stream_random_bits(c, c.in(0), index), f64);
  const Expr z = inverse_erf(u * (last - first) + first) * root + mean;
  const Expr bounded =
      scalar::min(scalar::max(z, Expr::constant(f64, low)), Expr::constant(f64, high));
  return scalar::cast(bounded, c.out_type().dtype);
}

}  // namespace

OpDef truncated_normal_op() {
  return OpDef{
      .name = "truncated_normal",
      .doc =
          "Independent random numbers of the normal distribution within [low, high], like "
          "torch.nn.init.trunc_normal_. A number depends only on the seed, the stream and the "
          "logical index, up to rounding on different devices.",
      .inputs = {{"seed", "i64 scalar"}},
      .attrs = {{"type", Type{}, "type of the result", true},
                {"mean", 0.0, "mean of the distribution before truncation"},
                {"std", 1.0, "standard deviation of the distribution before truncation"},
                {"low", -2.0, "lower bound, within 5 `std` of `mean`"},
                {"high", 2.0, "upper bound, within 5 `std` of `mean`"},
                {"stream", int64_t{-1}, "identifies the Philox random stream"}},
      .outputs = {{"y", "of type `type`"}},
      .infer =
          [](const InferCtx& c) {
            check_truncated_normal(c);
            return std::vector{infer_random(c)};
          },
      .grad = NoGrad{},
      .effects = Random{},
      .amp = {Amp::kFollow},
      .cost = [](const CostCtx& c) { return Cost{.flops = 200 * c.numel_out()}; },
      .in_place = {},
      .lower = Map{[](const LowerCtx& c) { return std::vector{truncated_normal(c)}; }},
      .kernels = {},
      .version = 1,
      .internal = true,
  };
}

}  // namespace fluid
