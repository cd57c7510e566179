#include "executor/checkpoint/merged_weight.h"

namespace fluid {

Tensor merged_weight(const Tensor& weight, const Tensor& a, const Tensor& b, double scale) {
  Tensor merged = weight.cast(f64).copy();
  const Tensor left = a.cast(f64), right = b.cast(f64);
  const auto rank = static_cast<size_t>(b.shape()[0]), out = static_cast<size_t>(b.shape()[1]);
  const auto sums = merged.as<double>();
  const auto factors = left.as<double>(), rows = right.as<double>();
  for (size_t i = 0; i < sums.size() / out; ++i) {
    for (size_t r = 0; r < rank; ++r) {
      const double factor = scale * factors[i * rank + r];
      for (size_t o = 0; o < out; ++o) sums[i * out + o] += factor * rows[r * out + o];
    }
  }
  return merged.cast(weight.dtype());
}

}  // namespace fluid
