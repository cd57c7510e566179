#include "executor/cpu_libraries/direct_product.h"

#include <algorithm>

#include "ir/error.h"

#if defined(__x86_64__)
#include "executor/cpu_libraries/avx512.h"

namespace fluid {
namespace {

constexpr int kLanes = 16;
// A tile of kTileRows x 4 vectors of accumulators, one row of filters and a broadcast source value
// take 29 of the 32 registers.
constexpr int kTileRows = 6;

/// Returns the mask of the lanes of vector `v` that are below `columns`.
FLUID_AVX512 __mmask16 lanes_below(int64_t columns, int v) {
  const int64_t n = std::clamp<int64_t>(columns - v * kLanes, 0, kLanes);
  return static_cast<__mmask16>((1u << n) - 1);
}

template <int kRows, int kVectors>
FLUID_AVX512 void pixel_tile(const DirectPixels& p, size_t first) {
  __mmask16 masks[kVectors];
  for (int v = 0; v < kVectors; ++v) masks[v] = lanes_below(p.columns, v);
  __m512 sums[kRows][kVectors];
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) {
      sums[r][v] = p.accumulates
                       ? _mm512_maskz_loadu_ps(masks[v], p.results[first + r] + v * kLanes)
                       : _mm512_setzero_ps();
    }
  }
  const float* filter = p.filters;
  for (const int64_t tap : p.taps) {
    const float* sources[kRows];
    for (int r = 0; r < kRows; ++r) sources[r] = p.sources[first + r] + tap;
    for (int64_t c = 0; c < p.source_channels; ++c) {
      __m512 row[kVectors];
      for (int v = 0; v < kVectors; ++v) row[v] = _mm512_loadu_ps(filter + v * kLanes);
      for (int r = 0; r < kRows; ++r) {
        const __m512 value = _mm512_set1_ps(sources[r][c]);
        for (int v = 0; v < kVectors; ++v) sums[r][v] = _mm512_fmadd_ps(value, row[v], sums[r][v]);
      }
      filter += kDirectPanel;
    }
  }
  for (int v = 0; v < kVectors; ++v) {
    const __m512 bias =
        p.bias ? _mm512_maskz_loadu_ps(masks[v], p.bias + v * kLanes) : _mm512_setzero_ps();
    for (int r = 0; r < kRows; ++r) {
      __m512 y = p.bias ? sums[r][v] + bias : sums[r][v];
      // The max instruction returns its second operand if either operand is NaN.
      if (p.relu) y = _mm512_max_ps(_mm512_setzero_ps(), y);
      _mm512_mask_storeu_ps(p.results[first + r] + v * kLanes, masks[v], y);
    }
  }
}

template <int kRows, int kVectors>
FLUID_AVX512 void filter_tile(const DirectFilterRows& p, size_t first) {
  __mmask16 masks[kVectors];
  for (int v = 0; v < kVectors; ++v) masks[v] = lanes_below(p.columns, v);
  float* const result = p.result + static_cast<int64_t>(first) * kDirectPanel;
  __m512 sums[kRows][kVectors];
  int64_t offsets[kRows];
  for (int r = 0; r < kRows; ++r) {
    offsets[r] = p.rows[first + r];
    for (int v = 0; v < kVectors; ++v) {
      sums[r][v] = p.accumulates ? _mm512_loadu_ps(result + r * kDirectPanel + v * kLanes)
                                 : _mm512_setzero_ps();
    }
  }
  const float* gradients = p.gradients;
  for (const float* const source : p.sources) {
    __m512 row[kVectors];
    for (int v = 0; v + 1 < kVectors; ++v) row[v] = _mm512_loadu_ps(gradients + v * kLanes);
    row[kVectors - 1] =
        _mm512_maskz_loadu_ps(masks[kVectors - 1], gradients + (kVectors - 1) * kLanes);
    for (int r = 0; r < kRows; ++r) {
      const __m512 value = _mm512_set1_ps(source[offsets[r]]);
      for (int v = 0; v < kVectors; ++v) sums[r][v] = _mm512_fmadd_ps(value, row[v], sums[r][v]);
    }
    gradients += p.gradient_stride;
  }
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v)
      _mm512_storeu_ps(result + r * kDirectPanel + v * kLanes, sums[r][v]);
  }
}

/// Computes the tile of `rows` rows, for rows <= kRows.
template <int kVectors, int kRows, class Product>
FLUID_AVX512 void tile(const Product& p, size_t first, size_t rows) {
  if constexpr (kRows > 0) {
    if (rows < kRows) return tile<kVectors, kRows - 1>(p, first, rows);
    if constexpr (std::is_same_v<Product, DirectPixels>) {
      pixel_tile<kRows, kVectors>(p, first);
    } else {
      filter_tile<kRows, kVectors>(p, first);
    }
  }
}

template <int kVectors, class Product>
FLUID_AVX512_ENTRY void all_tiles(const Product& p, size_t rows) {
  for (size_t first = 0; first < rows; first += kTileRows)
    tile<kVectors, kTileRows>(p, first, std::min<size_t>(rows - first, kTileRows));
}

template <class Product>
void all_tiles_of_columns(const Product& p, size_t rows) {
  static constexpr void (*kTiles[])(const Product&, size_t) = {
      all_tiles<1, Product>, all_tiles<2, Product>, all_tiles<3, Product>, all_tiles<4, Product>};
  kTiles[(p.columns - 1) / kLanes](p, rows);
}

}  // namespace

void compute_direct_pixels(const DirectPixels& p) { all_tiles_of_columns(p, p.sources.size()); }

void accumulate_direct_filter(const DirectFilterRows& p) { all_tiles_of_columns(p, p.rows.size()); }

}  // namespace fluid

#else

namespace fluid {

void compute_direct_pixels(const DirectPixels&) {
  throw InternalError("direct convolutions on another processor");
}

void accumulate_direct_filter(const DirectFilterRows&) {
  throw InternalError("direct convolutions on another processor");
}

}  // namespace fluid

#endif
