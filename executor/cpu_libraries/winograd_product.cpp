#include "executor/cpu_libraries/winograd_product.h"

#include <algorithm>

#include "ir/error.h"

#if defined(__x86_64__)
#include "executor/cpu_libraries/avx512.h"

namespace fluid {
namespace {

// A tile of kMaxRows x kMaxVectors accumulators, one row of the right matrix and a broadcast
// element of the left one take 29 of the 32 registers.
constexpr int kMaxRows = 6, kMaxVectors = 4;

/// Row-major matrices. Each result is a sum of `terms` products. The rows of `left` are `left_row`
/// values apart. A row of `right` and `result` has `columns` values.
struct Product {
  const float *left, *right;
  float* result;
  int64_t terms, left_row, columns;
};

/// Computes kRows x 16 kVectors results at the start of `p.result`.
template <int kRows, int kVectors>
FLUID_AVX512 void multiply_tile(const Product& p) {
  __m512 sums[kRows][kVectors];
  for (auto& row : sums) {
    for (__m512& sum : row) sum = _mm512_setzero_ps();
  }
  for (int64_t k = 0; k < p.terms; ++k) {
    __m512 right[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      right[v] = _mm512_loadu_ps(p.right + k * p.columns + v * kWinogradLanes);
    }
    for (int r = 0; r < kRows; ++r) {
      const __m512 left = _mm512_set1_ps(p.left[r * p.left_row + k]);
      for (int v = 0; v < kVectors; ++v) sums[r][v] = _mm512_fmadd_ps(left, right[v], sums[r][v]);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) {
      _mm512_storeu_ps(p.result + r * p.columns + v * kWinogradLanes, sums[r][v]);
    }
  }
}

/// Computes `rows` rows of 16 kVectors results, for rows <= kRows.
template <int kVectors, int kRows = kMaxRows>
FLUID_AVX512 void multiply_rest(const Product& p, int64_t rows) {
  if constexpr (kRows > 0) {
    if (rows == kRows) return multiply_tile<kRows, kVectors>(p);
    multiply_rest<kVectors, kRows - 1>(p, rows);
  }
}

template <int kVectors>
FLUID_AVX512_ENTRY void multiply_columns(Product p, int64_t rows) {
  for (; rows > 0; rows -= kMaxRows) {
    multiply_rest<kVectors>(p, std::min<int64_t>(rows, kMaxRows));
    p.left += kMaxRows * p.left_row;
    p.result += kMaxRows * p.columns;
  }
}

void multiply(const Product& product, int64_t rows) {
  static constexpr void (*kMultiply[])(Product, int64_t) = {
      multiply_columns<1>, multiply_columns<2>, multiply_columns<3>, multiply_columns<kMaxVectors>};
  for (int64_t column = 0; column < product.columns; column += kMaxVectors * kWinogradLanes) {
    const int64_t vectors =
        std::min<int64_t>((product.columns - column) / kWinogradLanes, kMaxVectors);
    Product part = product;
    part.right += column;
    part.result += column;
    kMultiply[vectors - 1](part, rows);
  }
}

}  // namespace

void multiply_winograd_planes(int planes, WinogradPlanes from, WinogradPlanes filters,
                              WinogradPlanes to, int64_t tiles, int64_t from_channels,
                              int64_t to_channels) {
  for (int64_t p = 0; p < planes; ++p) {
    multiply(
        {from.data + p * from.stride, filters.data + p * filters.stride, to.data + p * to.stride,
         from_channels, winograd_row(from_channels), winograd_row(to_channels)},
        tiles);
  }
}

}  // namespace fluid

#else

namespace fluid {

void multiply_winograd_planes(int, WinogradPlanes, WinogradPlanes, WinogradPlanes, int64_t, int64_t,
                              int64_t) {
  throw InternalError("Winograd's products on another processor");
}

}  // namespace fluid

#endif
