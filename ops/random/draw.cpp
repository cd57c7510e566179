#include "ops/random/draw.h"

#include <cmath>
#include <numbers>

namespace fluid {

Expr stream_random_bits(const LowerCtx& c, const Expr& seed, const Expr& index) {
  const int64_t stream = c.attr<int64_t>("stream");
  return scalar::philox(seed, Expr::index(stream >> 32), Expr::index(stream & 0xffffffff), index);
}

Expr uniform_from_bits(const Expr& bits, DType dtype) {
  return scalar::cast(scalar::floordiv(bits, Expr::index(256)), dtype) * std::ldexp(1.0, -24);
}

Expr normal_from_bits(const Expr& radius_bits, const Expr& angle_bits, DType dtype) {
  // The argument of the logarithm is in (0, 1].
  const Expr u = uniform_from_bits(radius_bits, dtype) + std::ldexp(1.0, -24);
  const Expr angle = uniform_from_bits(angle_bits, dtype) * (2 * std::numbers::pi);
  return scalar::unary(ScalarOp::sqrt, scalar::unary(ScalarOp::log, u) * -2.0) *
         scalar::unary(ScalarOp::cos, angle);
}

Expr linear_index(const LowerCtx& c, const Shape& shape, const std::vector<Expr>& index) {
  Expr linear = Expr::index(0);
  for (size_t d = 0; d < shape.size(); ++d) linear = linear * c.extent(shape[d]) + index[d];
  return linear;
}

Expr step_random_bits(const LowerCtx& c, size_t rng, const Shape& shape,
                      const std::vector<Expr>& index) {
  auto key = [&](int64_t i) { return c.read(rng, {Expr::index(i)}); };
  Shape sample = shape;
  std::vector<Expr> within = index;
  Expr first = Expr::index(0);
  for (size_t d = 0; d < shape.size(); ++d) {
    if (!shape[d].batch) continue;
    const Expr rows = Expr::index(shape[d].size);
    first = key(2) + scalar::floordiv(index[d], rows);
    within[d] = scalar::mod(index[d], rows);
    sample[d] = shape[d].size;
  }
  const Expr per_sample = Expr::index(sample.numel().size);
  return scalar::philox(key(0), key(1), Expr::index(c.attr<int64_t>("stream")),
                        first * per_sample + linear_index(c, sample, within));
}

void require_random_state(const InferCtx& c, size_t i) {
  c.require(c.in(i) == Type{i64, {3}, {}},
            "the random state must be i64[3] = {seed, run, first sample}, got " + c.in(i).str());
}

double dropout_scale(double p) { return p < 1 ? 1 / (1 - p) : 0; }

Expr dropout_keep_condition(const Expr& bits, double p) {
  const auto threshold = static_cast<int64_t>(std::ceil(std::ldexp(p, 32)));
  return scalar::compare(ScalarOp::ge, bits, Expr::index(threshold));
}

}  // namespace fluid
