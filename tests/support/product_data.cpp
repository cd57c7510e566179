#include "tests/support/product_data.h"

#include <algorithm>

namespace fluid::testing {
DType dtype_of(FluidGpuDtype number) {
  constexpr DType kTypes[] = {DType::f64, DType::f32, DType::f16, DType::bf16};
  return kTypes[number];
}

FluidGpuMatmul product_of(FluidGpuDtype number, bool transpose_a, bool transpose_b, int64_t count,
                          ProductSize size) {
  const auto [m, n, k] = size;
  return {.operands = number,
          .result = number,
          .transpose_a = transpose_a,
          .transpose_b = transpose_b,
          .m = m,
          .n = n,
          .k = k,
          .a_row_stride = transpose_a ? m : k,
          .b_row_stride = transpose_b ? k : n,
          .result_row_stride = n,
          .count = count,
          .a_matrix_stride = m * k,
          .b_matrix_stride = k * n,
          .result_matrix_stride = m * n};
}

ProductData::ProductData(const FluidGpuMatmul& p)
    : FactorData{small_integers(dtype_of(p.operands), p.count * p.a_matrix_stride, 1),
                 small_integers(dtype_of(p.operands), p.count * p.b_matrix_stride, 2),
                 small_integers(dtype_of(p.result), p.count * p.result_matrix_stride, 3),
                 small_integers(dtype_of(p.result), p.n, 4)} {}

std::vector<double> ProductData::expected(const FluidGpuMatmul& p) const {
  Tensor results(DType::f64, {p.count * p.m * p.n});
  for (int64_t i = 0; i < results.numel(); ++i) {
    const int64_t matrix = i / (p.m * p.n), row = i / p.n % p.m, column = i % p.n;
    double sum = (p.has_addend != 0 ? addend.at(i) : 0) + (p.bias != 0 ? bias.at(column) : 0);
    for (int64_t k = 0; k < p.k; ++k) {
      const int64_t at_a = p.transpose_a != 0 ? k * p.m + row : row * p.k + k;
      const int64_t at_b = p.transpose_b != 0 ? column * p.k + k : k * p.n + column;
      sum += a.at(matrix * p.a_matrix_stride + at_a) * b.at(matrix * p.b_matrix_stride + at_b);
    }
    results.as<double>()[static_cast<size_t>(i)] = p.relu != 0 ? std::max(sum, 0.0) : sum;
  }
  const Tensor rounded = results.cast(dtype_of(p.result));
  std::vector<double> all;
  for (int64_t i = 0; i < rounded.numel(); ++i) all.push_back(rounded.at(i));
  return all;
}

}  // namespace fluid::testing
