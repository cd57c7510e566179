#include "executor/cpu_libraries/winograd_transform.h"

#include <algorithm>

#include "ir/error.h"

#if defined(__x86_64__)
#include "executor/cpu_libraries/avx512.h"

namespace fluid {
namespace {

using Vec = __m512;

FLUID_AVX512 Vec broadcast(float x) { return _mm512_set1_ps(x); }
FLUID_AVX512 Vec fma(float a, Vec x, Vec y) { return _mm512_fmadd_ps(broadcast(a), x, y); }

/// Returns the mask of the first `n` lanes, of all lanes for n >= 16, and of none for n <= 0.
FLUID_AVX512 __mmask16 first_lanes(int64_t n) {
  return static_cast<__mmask16>((1u << std::clamp<int64_t>(n, 0, kWinogradLanes)) - 1);
}

/// Loads the values from[i + lane] of the lanes in `mask`. The other lanes are 0.
template <DType D>
FLUID_AVX512 Vec load(const void* from, int64_t i, __mmask16 mask) {
  if constexpr (D == DType::f32) {
    return _mm512_maskz_loadu_ps(mask, static_cast<const float*>(from) + i);
  } else {
    const __m256i half = _mm256_maskz_loadu_epi16(mask, static_cast<const uint16_t*>(from) + i);
    if constexpr (D == DType::f16) return _mm512_cvtph_ps(half);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
  }
}

/// Converts f32 to bf16, rounding to nearest even. A NaN stays a NaN.
FLUID_AVX512 __m256i to_bf16(Vec x) {
  const __m512i bits = _mm512_castps_si512(x);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
  const __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
  return _mm512_cvtepi32_epi16(_mm512_srli_epi32(_mm512_mask_mov_epi32(rounded, nan, quiet), 16));
}

/// Stores the lanes in `mask` to to[i + lane].
template <DType D>
FLUID_AVX512 void store(Vec x, void* to, int64_t i, __mmask16 mask) {
  if constexpr (D == DType::f32) {
    _mm512_mask_storeu_ps(static_cast<float*>(to) + i, mask, x);
  } else {
    const __m256i half =
        D == DType::f16 ? _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT) : to_bf16(x);
    _mm256_mask_storeu_epi16(static_cast<uint16_t*>(to) + i, mask, half);
  }
}

/// Evaluates a polynomial at p and -p, given the sums of its even and its odd terms.
FLUID_AVX512 void sum_and_difference(Vec even, Vec odd, Vec* to) {
  to[0] = even + odd;
  to[1] = even - odd;
}

/// Functions for filters of kTaps x kTaps. Each multiplies a row or column of a tile by one of
/// Winograd's matrices A, B and G, or by its transpose.
template <int kTaps>
struct WinogradMatrices;

template <>
struct WinogradMatrices<3> {
  FLUID_AVX512 static void by_b(const Vec* d, Vec* t) {
    t[0] = fma(4, d[0], fma(-5, d[2], d[4]));
    const Vec even = fma(-4, d[2], d[4]), odd = fma(-4, d[1], d[3]);
    sum_and_difference(even, odd, t + 1);
    const Vec outer = d[4] - d[2], twice = d[3] - d[1];
    sum_and_difference(outer, twice + twice, t + 3);
    t[5] = fma(4, d[1], fma(-5, d[3], d[5]));
  }

  FLUID_AVX512 static void by_a(const Vec* m, Vec* y) {
    const Vec s1 = m[1] + m[2], d1 = m[1] - m[2];
    const Vec s2 = m[3] + m[4], d2 = m[3] - m[4];
    y[0] = m[0] + s1 + s2;
    y[1] = fma(2, d2, d1);
    y[2] = fma(4, s2, s1);
    y[3] = fma(8, d2, d1) + m[5];
  }

  FLUID_AVX512 static void by_a_transposed(const Vec* y, Vec* m) {
    m[0] = y[0];
    sum_and_difference(y[0] + y[2], y[1] + y[3], m + 1);
    sum_and_difference(fma(4, y[2], y[0]), fma(8, y[3], y[1] + y[1]), m + 3);
    m[5] = y[3];
  }

  FLUID_AVX512 static void by_g(const Vec* g, Vec* u) {
    u[0] = broadcast(1 / 4.f) * g[0];
    const Vec outer = broadcast(-1 / 6.f) * (g[0] + g[2]);
    sum_and_difference(outer, broadcast(-1 / 6.f) * g[1], u + 1);
    const Vec outer2 = fma(1 / 24.f, g[0], broadcast(1 / 6.f) * g[2]);
    sum_and_difference(outer2, broadcast(1 / 12.f) * g[1], u + 3);
    u[5] = g[2];
  }

  FLUID_AVX512 static void by_g_transposed(const Vec* u, Vec* g) {
    const Vec s1 = u[1] + u[2], d1 = u[2] - u[1];
    const Vec s2 = u[3] + u[4], d2 = u[3] - u[4];
    g[0] = fma(1 / 4.f, u[0], fma(-1 / 6.f, s1, broadcast(1 / 24.f) * s2));
    g[1] = fma(1 / 6.f, d1, broadcast(1 / 12.f) * d2);
    g[2] = fma(-1 / 6.f, s1, fma(1 / 6.f, s2, u[5]));
  }
};

template <>
struct WinogradMatrices<5> {
  FLUID_AVX512 static void by_b(const Vec* d, Vec* t) {
    t[0] = fma(21 / 4.f, d[4] - d[2], d[0] - d[6]);
    sum_and_difference(fma(-17 / 4.f, d[4], d[2] + d[6]), fma(-17 / 4.f, d[3], d[1] + d[5]), t + 1);
    sum_and_difference(fma(1 / 4.f, d[2], fma(-5 / 4.f, d[4], d[6])),
                       fma(1 / 2.f, d[1], fma(-5 / 2.f, d[3], d[5] + d[5])), t + 3);
    sum_and_difference(fma(4, d[2], fma(-5, d[4], d[6])),
                       fma(2, d[1], fma(-5 / 2.f, d[3], broadcast(1 / 2.f) * d[5])), t + 5);
    t[7] = fma(21 / 4.f, d[3] - d[5], d[7] - d[1]);
  }

  FLUID_AVX512 static void by_a(const Vec* m, Vec* y) {
    const Vec s1 = m[1] + m[2], s2 = m[3] + m[4], s3 = m[5] + m[6];
    const Vec d1 = m[1] - m[2], d2 = m[3] - m[4], d3 = m[5] - m[6];
    y[0] = m[0] + s1 + s2 + s3;
    y[1] = fma(2, d2, fma(1 / 2.f, d3, d1));
    y[2] = fma(4, s2, fma(1 / 4.f, s3, s1));
    y[3] = fma(8, d2, fma(1 / 8.f, d3, d1)) + m[7];
  }

  FLUID_AVX512 static void by_a_transposed(const Vec* y, Vec* m) {
    m[0] = y[0];
    sum_and_difference(y[0] + y[2], y[1] + y[3], m + 1);
    sum_and_difference(fma(4, y[2], y[0]), fma(8, y[3], y[1] + y[1]), m + 3);
    sum_and_difference(fma(1 / 4.f, y[2], y[0]), fma(1 / 8.f, y[3], broadcast(1 / 2.f) * y[1]),
                       m + 5);
    m[7] = y[3];
  }

  FLUID_AVX512 static void by_g(const Vec* g, Vec* u) {
    u[0] = g[0];
    sum_and_difference(broadcast(-2 / 9.f) * (g[0] + g[2] + g[4]),
                       broadcast(-2 / 9.f) * (g[1] + g[3]), u + 1);
    sum_and_difference(broadcast(1 / 90.f) * fma(16, g[4], fma(4, g[2], g[0])),
                       broadcast(1 / 45.f) * fma(4, g[3], g[1]), u + 3);
    sum_and_difference(broadcast(32 / 45.f) * fma(1 / 16.f, g[4], fma(1 / 4.f, g[2], g[0])),
                       broadcast(16 / 45.f) * fma(1 / 4.f, g[3], g[1]), u + 5);
    u[7] = g[4];
  }

  FLUID_AVX512 static void by_g_transposed(const Vec* u, Vec* g) {
    const Vec s1 = broadcast(-2 / 9.f) * (u[1] + u[2]), d1 = broadcast(-2 / 9.f) * (u[1] - u[2]);
    const Vec s2 = broadcast(1 / 90.f) * (u[3] + u[4]), d2 = broadcast(1 / 90.f) * (u[3] - u[4]);
    const Vec s3 = broadcast(32 / 45.f) * (u[5] + u[6]), d3 = broadcast(32 / 45.f) * (u[5] - u[6]);
    g[0] = u[0] + s1 + s2 + s3;
    g[1] = fma(2, d2, fma(1 / 2.f, d3, d1));
    g[2] = fma(4, s2, fma(1 / 4.f, s3, s1));
    g[3] = fma(8, d2, fma(1 / 8.f, d3, d1));
    g[4] = fma(16, s2, fma(1 / 16.f, s3, s1)) + u[7];
  }
};

/// Computes y = M x M' for a square matrix x with kIn rows. kTransform multiplies a vector by M.
/// Calls `load(i)` for element i of x, and `store(i, value)` for element i of y. Copies of x and y
/// on the stack would double the number of stores.
template <int kIn, int kOut, void (*kTransform)(const Vec*, Vec*), class Load, class Store>
FLUID_AVX512 void transform_2d(const Load& load, const Store& store) {
  Vec mx[kIn * kOut];  // M x, in rows of kIn elements
#pragma GCC unroll 8
  for (int c = 0; c < kIn; ++c) {
    Vec column[kIn], result[kOut];
#pragma GCC unroll 8
    for (int r = 0; r < kIn; ++r) column[r] = load(r * kIn + c);
    kTransform(column, result);
#pragma GCC unroll 8
    for (int r = 0; r < kOut; ++r) mx[r * kIn + c] = result[r];
  }
#pragma GCC unroll 8
  for (int r = 0; r < kOut; ++r) {
    Vec row[kOut];
    kTransform(mx + r * kIn, row);
#pragma GCC unroll 8
    for (int c = 0; c < kOut; ++c) store(r * kOut + c, row[c]);
  }
}

/// Element i of a transformed tile or filter for 16 channels: the values at one address in plane i.
struct PlaneElements {
  float* first;
  int64_t stride;

  PlaneElements(const WinogradPlanes& planes, int64_t channel)
      : first(planes.at(channel)), stride(planes.plane_stride) {}
  FLUID_AVX512 Vec operator()(int i) const { return _mm512_loadu_ps(first + i * stride); }
  FLUID_AVX512 void operator()(int i, Vec x) const { _mm512_storeu_ps(first + i * stride, x); }
};

/// Element i of a tile for 16 channels: those of pixel i. Prefetches the pixel of the next tile.
template <DType D>
struct PixelElements {
  std::byte* const* pixels;
  std::byte* const* next;
  int64_t channel;
  __mmask16 mask;

  FLUID_AVX512 Vec operator()(int i) const {
    __builtin_prefetch(next[i] + channel * size_of(D));
    return load<D>(pixels[i], channel, mask);
  }
};

/// Stores element i of a tile of results for 16 channels, plus a bias, to pixel i.
template <DType D>
struct ResultPixels {
  const WinogradOutputPixels& pixels;
  int64_t channel;
  __mmask16 mask;
  Vec bias;
  bool relu;

  FLUID_AVX512 void operator()(int i, Vec x) const {
    std::byte* const pixel = pixels[static_cast<size_t>(i)];
    if (pixel == nullptr) return;
    const Vec sum = x + bias;
    // The max instruction returns its second operand if either operand is NaN, so the relu
    // propagates NaN.
    store<D>(relu ? _mm512_max_ps(broadcast(0), sum) : sum, pixel, channel, mask);
  }
};

/// The taps of 16 filters in a block of filters (see Transforms). `lanes`: offsets of the filters.
struct FilterTaps {
  float* first;
  __m512i lanes;
  int step;  ///< distance of adjacent taps; negative: the filter is rotated

  FLUID_AVX512 Vec operator()(int i) const {
    return _mm512_i32gather_ps(lanes, first + i * step, 4);
  }
  FLUID_AVX512 void operator()(int i, Vec x) const {
    _mm512_i32scatter_ps(first + i * step, lanes, x, 4);
  }
};

template <DType D, int kTaps>
struct Transforms {
  using L = WinogradMatrices<kTaps>;
  static constexpr int kInputTile = kWinogradOutputTile + kTaps - 1,
                       kPlanes = kInputTile * kInputTile;
  static constexpr int kArea = kTaps * kTaps;

  /// Transforms a tile of kSide x kSide pixels, for all channels. kTransform multiplies a row or
  /// column of the tile by the matrix of the transform.
  template <int kSide, void (*kTransform)(const Vec*, Vec*)>
  FLUID_AVX512 static void square(std::byte* const* pixels, std::byte* const* next,
                                  int64_t channels, WinogradPlanes to) {
    for (int64_t i = 0; i < channels; i += kWinogradLanes) {
      const __mmask16 mask = first_lanes(channels - i);
      transform_2d<kSide, kInputTile, kTransform>(PixelElements<D>{pixels, next, i, mask},
                                                  PlaneElements(to, i));
    }
  }

  FLUID_AVX512_ENTRY static void image(const WinogradInputPixels& pixels,
                                       const WinogradInputPixels& next, int64_t channels,
                                       WinogradPlanes to) {
    square<kInputTile, L::by_b>(pixels.data(), next.data(), channels, to);
  }

  FLUID_AVX512_ENTRY static void gradient(const WinogradOutputPixels& pixels,
                                          const WinogradOutputPixels& next, int64_t channels,
                                          WinogradPlanes to) {
    square<kWinogradOutputTile, L::by_a_transposed>(pixels.data(), next.data(), channels, to);
  }

  FLUID_AVX512_ENTRY static void results(WinogradPlanes from, int64_t channels, const void* bias,
                                         bool relu, const WinogradOutputPixels& pixels) {
    for (int64_t i = 0; i < channels; i += kWinogradLanes) {
      const __mmask16 mask = first_lanes(channels - i);
      const Vec added = bias != nullptr ? load<D>(bias, i, mask) : broadcast(0);
      transform_2d<kInputTile, kWinogradOutputTile, L::by_a>(
          PlaneElements(from, i), ResultPixels<D>{pixels, i, mask, added, relu});
    }
  }

  // Elements in one row of a block of 16 x 16 filters. A row holds 16 filters. The taps of a filter
  // are contiguous in memory.
  static constexpr int64_t kRow = kWinogradLanes * kArea;

  /// Returns the number of elements in row `r` of the block of filters from (`out`, `in`) on.
  static int64_t block_row(const WinogradFilter& f, int64_t out, int64_t in, int64_t r) {
    return out + r < f.out_channels ? std::min(kWinogradLanes, f.in_channels - in) * kArea : 0;
  }

  FLUID_AVX512_ENTRY static void filter(const WinogradFilter& f, const void* w, int64_t begin,
                                        int64_t end, WinogradPlanes to) {
    alignas(64) float block[kWinogradLanes * kRow];
    // Strides in elements between the filters of consecutive result channels, and between the
    // filters of consecutive source channels.
    const int64_t next_to = f.rotated ? kArea : kRow, next_from = f.rotated ? kRow : kArea;
    const __m512i lanes =
        _mm512_mullo_epi32(_mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0),
                           _mm512_set1_epi32(static_cast<int>(next_to)));
    for (int64_t s = begin; s < end; s += kWinogradLanes) {
      for (int64_t t = 0; t < f.result_channels(); t += kWinogradLanes) {
        const int64_t out = f.rotated ? s : t, in = f.rotated ? t : s;
        for (int64_t r = 0; r < kWinogradLanes; ++r) {
          const int64_t elements = block_row(f, out, in, r);
          for (int64_t i = 0; i < kRow; i += kWinogradLanes) {
            _mm512_store_ps(block + r * kRow + i,
                            load<D>(w, ((out + r) * f.in_channels + in) * kArea + i,
                                    first_lanes(elements - i)));
          }
        }
        for (int64_t c = 0; c < kWinogradLanes; ++c) {
          float* const first = block + c * next_from;
          const FilterTaps taps =
              f.rotated ? FilterTaps{first + kArea - 1, lanes, -1} : FilterTaps{first, lanes, 1};
          transform_2d<kTaps, kInputTile, L::by_g>(taps, PlaneElements(to.from_row(s + c), t));
        }
      }
    }
  }

  FLUID_AVX512_ENTRY static void filter_gradient(const WinogradFilter& f, WinogradPlanes from,
                                                 int64_t begin, int64_t end, void* w) {
    alignas(64) float block[kWinogradLanes * kRow];
    const __m512i lanes =
        _mm512_mullo_epi32(_mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0),
                           _mm512_set1_epi32(static_cast<int>(kRow)));
    for (int64_t in = begin; in < end; in += kWinogradLanes) {
      for (int64_t out = 0; out < f.out_channels; out += kWinogradLanes) {
        for (int64_t c = 0; c < kWinogradLanes; ++c) {
          transform_2d<kInputTile, kTaps, L::by_g_transposed>(
              PlaneElements(from.from_row(in + c), out), FilterTaps{block + c * kArea, lanes, 1});
        }
        for (int64_t r = 0; r < kWinogradLanes; ++r) {
          const int64_t elements = block_row(f, out, in, r);
          for (int64_t i = 0; i < elements; i += kWinogradLanes) {
            store<D>(_mm512_load_ps(block + r * kRow + i), w,
                     ((out + r) * f.in_channels + in) * kArea + i, first_lanes(elements - i));
          }
        }
      }
    }
  }
};

}  // namespace

#define FLUID_DISPATCH_VARIANT(variant, call)                                              \
  check(variant.taps == 3 || variant.taps == 5, "Winograd's transforms of other filters"); \
  switch (variant.dtype) {                                                                 \
    case DType::f32:                                                                       \
      FLUID_DISPATCH_TAPS(DType::f32, variant, call)                                       \
    case DType::bf16:                                                                      \
      FLUID_DISPATCH_TAPS(DType::bf16, variant, call)                                      \
    case DType::f16:                                                                       \
      FLUID_DISPATCH_TAPS(DType::f16, variant, call)                                       \
    default:                                                                               \
      throw InternalError("Winograd's transforms of another dtype");                       \
  }
#define FLUID_DISPATCH_TAPS(D, variant, call) \
  return variant.taps == 3 ? Transforms<D, 3>::call : Transforms<D, 5>::call;

#else

namespace fluid {

#define FLUID_DISPATCH_VARIANT(variant, call) \
  throw InternalError("Winograd's transforms on another processor")

#endif

void transform_winograd_input(const WinogradVariant& variant, const WinogradInputPixels& pixels,
                              const WinogradInputPixels& next, int64_t channels,
                              WinogradPlanes to) {
  FLUID_DISPATCH_VARIANT(variant, image(pixels, next, channels, to))
}

void transform_winograd_output_gradient(const WinogradVariant& variant,
                                        const WinogradOutputPixels& pixels,
                                        const WinogradOutputPixels& next, int64_t channels,
                                        WinogradPlanes to) {
  FLUID_DISPATCH_VARIANT(variant, gradient(pixels, next, channels, to))
}

void transform_winograd_output(const WinogradVariant& variant, WinogradPlanes from,
                               int64_t channels, const void* bias, bool relu,
                               const WinogradOutputPixels& pixels) {
  FLUID_DISPATCH_VARIANT(variant, results(from, channels, bias, relu, pixels))
}

void transform_winograd_filter(const WinogradFilter& filter, const void* w, int64_t begin,
                               int64_t end, WinogradPlanes to) {
  FLUID_DISPATCH_VARIANT(filter.variant, filter(filter, w, begin, end, to))
}

void transform_winograd_filter_gradient(const WinogradFilter& filter, WinogradPlanes from,
                                        int64_t begin, int64_t end, void* w) {
  FLUID_DISPATCH_VARIANT(filter.variant, filter_gradient(filter, from, begin, end, w))
}

}  // namespace fluid
