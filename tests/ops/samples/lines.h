#pragma once

// Helpers of the samples of ops along an axis.

#include <cmath>

#include "tests/support/op_harness.h"

namespace fluid::testing {

/// A shape around an axis: element (outer, t, inner) is at (outer * extent + t) * inner extent +
/// inner.
struct Lines {
  int64_t outer = 1, extent = 1, inner = 1;
  Lines(const Extents& shape, int64_t axis) {
    const auto at = axis < 0 ? axis + std::ssize(shape) : axis;
    for (int64_t d = 0; d < std::ssize(shape); ++d) {
      (d < at ? outer : d == at ? extent : inner) *= shape[static_cast<size_t>(d)];
    }
  }
  int64_t place(int64_t o, int64_t t, int64_t i) const { return (o * extent + t) * inner + i; }
  void for_each(const std::function<void(int64_t o, int64_t i)>& visit) const {
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t i = 0; i < inner; ++i) visit(o, i);
    }
  }
};

/// Whole numbers in [low, high) of any dtype.
inline Tensor whole_tensor(Extents shape, double low, double high, DType dtype = i64) {
  Tensor t = random_tensor(std::move(shape), low, high, 7);
  for (double& v : t.as<double>()) v = std::floor(v);
  return t.cast(dtype);
}

}  // namespace fluid::testing
