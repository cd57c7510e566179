#include <algorithm>
#include <array>

#include "ops/nn/resize2d.h"

namespace fluid {
namespace {

/// Cubic mode: weights of the elements at distances 1 + t, t, 1 - t and 2 - t from the source
/// coordinate, for t in [0, 1). Each row has the coefficients of 1, t, t^2 and t^3.
constexpr double kCubic = -0.75;
constexpr std::array<std::array<double, 4>, 4> kCubicWeights = {{
    {0, kCubic, -2 * kCubic, kCubic},
    {1, 0, -(kCubic + 3), kCubic + 2},
    {0, -kCubic, 2 * kCubic + 3, -(kCubic + 2)},
    {0, 0, kCubic, -kCubic},
}};

Expr resize_clamp(const Expr& index, int64_t last) {
  return scalar::min(scalar::max(index, Expr::index(0)), Expr::index(last));
}

}  // namespace

int64_t ResizeAxis::taps() const {
  if (mode == Mode::nearest) return 1;
  return mode == Mode::linear ? 2 : 4;
}

ResizeAxis::AffineMap ResizeAxis::source() const {
  if (mode == Mode::nearest) return {in, 0, out};
  if (!align_corners) return {2 * in, in - out, 2 * out};
  if (out == 1) return {0, 0, 1};
  return {in - 1, 0, out - 1};
}

Expr ResizeAxis::source_numerator(const Expr& output) const {
  const AffineMap s = source();
  const Expr numerator = output * Expr::index(s.scale) + Expr::index(s.offset);
  return mode == Mode::linear ? resize_clamp(numerator, s.divisor * (in - 1)) : numerator;
}

Expr ResizeAxis::lower_element(const Expr& output) const {
  return scalar::floordiv(source_numerator(output), Expr::index(source().divisor));
}

Expr ResizeAxis::element(const Expr& output, int64_t tap) const {
  const Expr lower = lower_element(output);
  if (mode == Mode::nearest) return lower;
  if (mode == Mode::linear) {
    return tap == 0 ? lower : scalar::min(lower + Expr::index(1), Expr::index(in - 1));
  }
  return resize_clamp(lower + Expr::index(tap - 1), in - 1);
}

Expr ResizeAxis::tap_weight(const Expr& output, int64_t tap, DType dtype) const {
  if (mode == Mode::nearest) return Expr::constant(dtype, 1);
  const int64_t divisor = source().divisor;
  const Expr rest = source_numerator(output) - lower_element(output) * Expr::index(divisor);
  const Expr t = scalar::cast(rest, dtype) / static_cast<double>(divisor);
  if (mode == Mode::linear) return tap == 0 ? 1.0 - t : t;
  const auto& c = kCubicWeights[static_cast<size_t>(tap)];
  return ((c[3] * t + c[2]) * t + c[1]) * t + c[0];
}

int64_t ResizeAxis::max_outputs() const {
  const AffineMap s = source();
  // An output reads the element only if its source coordinate lies in an interval of length
  // `width`.
  const int64_t width = mode == Mode::nearest ? 1 : taps();
  if (s.scale == 0) return out;
  return std::min(out, (width * s.divisor + s.scale - 1) / s.scale);
}

Expr ResizeAxis::first_output(const Expr& element) const {
  const AffineMap s = source();
  if (mode == Mode::nearest) {
    return scalar::floordiv(element * Expr::index(out) + Expr::index(in - 1), Expr::index(in));
  }
  if (s.scale == 0 || max_outputs() == out) return Expr::index(0);
  // First output whose source coordinate is greater than element - taps / 2.
  const Expr before =
      element * Expr::index(s.divisor) + Expr::index(-taps() / 2 * s.divisor - s.offset);
  return scalar::floordiv(before, Expr::index(s.scale)) + Expr::index(1);
}

Expr ResizeAxis::weight(const Expr& output, const Expr& element, DType dtype) const {
  Expr sum;
  for (int64_t tap = 0; tap < taps(); ++tap) {
    const Expr reads = scalar::compare(ScalarOp::eq, this->element(output, tap), element);
    const Expr part = select_if(reads, tap_weight(output, tap, dtype), 0);
    sum = sum ? sum + part : part;
  }
  return sum;
}

}  // namespace fluid
