#include "executor/cpu_libraries/amx_product.h"

#include <algorithm>

#include "ir/error.h"

#if defined(__x86_64__)
#include "executor/cpu_libraries/amx.h"

namespace fluid {
namespace {

FLUID_AMX __mmask16 first_lanes(int64_t n) { return static_cast<__mmask16>((1u << n) - 1); }

// Tiles 0 to 3 are the sums, 4 and 5 the left factors, 6 and 7 the right ones.
template <int kRows, int kColumns>
void add_product(const AmxProduct& p) {
  float* const sums = p.sums;
  const auto address = [&](int row, int column) {
    return sums + row * p.sums_row + column * p.sums_column;
  };
  if (p.accumulates) {
    load_tile<0>(address(0, 0), kTileRowBytes);
    if constexpr (kColumns > 1) load_tile<1>(address(0, 1), kTileRowBytes);
    if constexpr (kRows > 1) load_tile<2>(address(1, 0), kTileRowBytes);
    if constexpr (kRows > 1 && kColumns > 1) load_tile<3>(address(1, 1), kTileRowBytes);
  } else {
    zero_tile<0>();
    zero_tile<1>();
    zero_tile<2>();
    zero_tile<3>();
  }
  const uint16_t* left = p.left;
  const uint16_t* right = p.right;
  for (int64_t step = 0; step < p.steps; ++step) {
    load_tile<4>(left, p.left_row_bytes);
    load_tile<6>(right, kTileRowBytes);
    if constexpr (kColumns > 1) load_tile<7>(right + p.right_tile, kTileRowBytes);
    if constexpr (kRows > 1) load_tile<5>(left + p.left_tile, p.left_row_bytes);
    add_tile_product<0, 4, 6>();
    if constexpr (kColumns > 1) add_tile_product<1, 4, 7>();
    if constexpr (kRows > 1) add_tile_product<2, 5, 6>();
    if constexpr (kRows > 1 && kColumns > 1) add_tile_product<3, 5, 7>();
    left += p.left_step;
    right += kAmxFactorValues;
  }
  store_tile<0>(address(0, 0), kTileRowBytes);
  if constexpr (kColumns > 1) store_tile<1>(address(0, 1), kTileRowBytes);
  if constexpr (kRows > 1) store_tile<2>(address(1, 0), kTileRowBytes);
  if constexpr (kRows > 1 && kColumns > 1) store_tile<3>(address(1, 1), kTileRowBytes);
}

/// The rows of both tiles that have the pixels of a pair of terms side by side.
struct PairRows {
  __m512i tiles[2];
};

/// Returns those of channels [channel, channel + kAmxTerms).
FLUID_AMX PairRows pair_rows(const AmxChannels& c, size_t pixel, int64_t channel) {
  const int64_t count = std::min(c.channels - channel, kAmxTerms);
  const auto channels = static_cast<__mmask32>((uint64_t{1} << count) - 1);
  const int64_t even = c.offsets[pixel], odd = c.offsets[pixel + 1];
  const uint16_t* const source = c.source + channel;
  const __m512i a = _mm512_maskz_loadu_epi16(even < 0 ? __mmask32{0} : channels,
                                             source + std::max<int64_t>(even, 0));
  const __m512i b = _mm512_maskz_loadu_epi16(odd < 0 ? __mmask32{0} : channels,
                                             source + std::max<int64_t>(odd, 0));
  return {{_mm512_unpacklo_epi16(a, b), _mm512_unpackhi_epi16(a, b)}};
}

/// Transposes 16 x 16 values of 32 bits.
FLUID_AMX void transpose(__m512i (&rows)[16]) {
  __m512i t[16];
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(rows[i], rows[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(rows[i], rows[i + 1]);
  }
  for (int i = 0; i < 16; i += 4) {
    rows[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    rows[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    rows[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    rows[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
  // Row 4 i + j has, in its 128-bit lane k, rows 4 i to 4 i + 3 of column 4 k + j.
  for (int j = 0; j < 4; ++j) {
    const __m512i a = _mm512_shuffle_i32x4(rows[j], rows[4 + j], 0x88);
    const __m512i b = _mm512_shuffle_i32x4(rows[j], rows[4 + j], 0xdd);
    const __m512i c = _mm512_shuffle_i32x4(rows[8 + j], rows[12 + j], 0x88);
    const __m512i d = _mm512_shuffle_i32x4(rows[8 + j], rows[12 + j], 0xdd);
    t[j] = _mm512_shuffle_i32x4(a, c, 0x88);
    t[8 + j] = _mm512_shuffle_i32x4(a, c, 0xdd);
    t[4 + j] = _mm512_shuffle_i32x4(b, d, 0x88);
    t[12 + j] = _mm512_shuffle_i32x4(b, d, 0xdd);
  }
  for (int i = 0; i < 16; ++i) rows[i] = t[i];
}

/// Stores columns [column, column + kAmxSide) of a row of results.
FLUID_AMX void store_columns(const AmxResults& r, int64_t column, __m512 y, uint16_t* to) {
  const __mmask16 mask = first_lanes(std::min(r.columns - column, kAmxSide));
  if (r.bias != nullptr) {
    const __m256i bias = _mm256_maskz_loadu_epi16(mask, r.bias + column);
    y += _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bias), 16));
  }
  // The max instruction returns its second operand if either operand is NaN.
  if (r.relu) y = _mm512_max_ps(_mm512_setzero_ps(), y);
  _mm256_mask_storeu_epi16(to + column, mask, (__m256i)_mm512_cvtneps_pbh(y));
}

/// Loads the terms of row `row` from `term` on; zeros behind the last row and term.
FLUID_AMX __m512i load_terms(const AmxMatrix& m, int64_t row, int64_t term) {
  if (row >= m.rows) return _mm512_setzero_si512();
  const int64_t count = std::min(m.terms - term, kAmxTerms);
  const auto mask = static_cast<__mmask32>((uint64_t{1} << count) - 1);
  return _mm512_maskz_loadu_epi16(mask, m.source + row * m.stride + term);
}

}  // namespace

void with_amx_tiles(void (*body)(void* context), void* context) {
  const ScopedTiles tiles;
  body(context);
}

void add_amx_product(const AmxProduct& p) {
  if (p.row_tiles > 1) return p.column_tiles > 1 ? add_product<2, 2>(p) : add_product<2, 1>(p);
  p.column_tiles > 1 ? add_product<1, 2>(p) : add_product<1, 1>(p);
}

FLUID_AMX_ENTRY void pack_amx_columns(const AmxChannels& c, uint16_t* tiles, int64_t next_tile) {
  for (size_t pixel = 0; pixel < c.offsets.size(); pixel += 2) {
    uint16_t* to = tiles + pixel * kAmxSide;
    for (int64_t channel = 0; channel < c.channels; channel += kAmxTerms) {
      const PairRows rows = pair_rows(c, pixel, channel);
      _mm512_storeu_si512(to, rows.tiles[0]);
      _mm512_storeu_si512(to + next_tile, rows.tiles[1]);
      to += 2 * next_tile;
    }
  }
}

FLUID_AMX_ENTRY void pack_amx_rows(const AmxChannels& c, uint16_t* tiles, int64_t next_tile) {
  for (size_t first = 0; first < c.offsets.size(); first += kAmxTerms) {
    uint16_t* to = tiles + first * kAmxSide;
    for (int64_t channel = 0; channel < c.channels; channel += kAmxTerms) {
      __m512i rows[2][16];
      for (size_t i = 0; i < 16; ++i) {
        const PairRows pair = pair_rows(c, first + 2 * i, channel);
        rows[0][i] = pair.tiles[0];
        rows[1][i] = pair.tiles[1];
      }
      for (auto& tile : rows) {
        transpose(tile);
        for (size_t i = 0; i < 16; ++i) _mm512_storeu_si512(to + i * kAmxTerms, tile[i]);
        to += next_tile;
      }
    }
  }
}

FLUID_AMX_ENTRY void copy_amx_matrix(const AmxMatrix& m, uint16_t* tiles, int64_t next_tile) {
  for (int64_t row = 0; row < m.rows; ++row) {
    uint16_t* to = tiles + row / kAmxSide * next_tile + row % kAmxSide * kAmxTerms;
    for (int64_t term = 0; term < m.terms; term += kAmxTerms) {
      _mm512_storeu_si512(to, load_terms(m, row, term));
      to += kAmxFactorValues;
    }
  }
}

FLUID_AMX_ENTRY void transpose_amx_matrix(const AmxMatrix& m, uint16_t* tiles, int64_t next_tile) {
  for (int64_t first = 0; first < m.rows; first += kAmxTerms) {
    for (int64_t tile = 0; tile < 2; ++tile) {
      for (int64_t term = 0; term < m.terms; term += kAmxTerms) {
        __m512i rows[16];
        for (int64_t i = 0; i < 16; ++i)
          rows[i] = load_terms(m, first + amx_channel(tile, i), term);
        transpose(rows);
        uint16_t* const to = tiles + term * kAmxSide;
        for (int64_t i = 0; i < 16; ++i) _mm512_storeu_si512(to + i * kAmxTerms, rows[i]);
      }
      tiles += next_tile;
    }
  }
}

void pack_amx_terms(const uint16_t* even, const uint16_t* odd, int64_t stride, int64_t columns,
                    uint16_t* to) {
  for (int64_t column = 0; column < columns; ++column) {
    to[2 * column] = even != nullptr ? even[column * stride] : uint16_t{0};
    to[2 * column + 1] = odd != nullptr ? odd[column * stride] : uint16_t{0};
  }
  std::fill(to + 2 * columns, to + 2 * kAmxSide, uint16_t{0});
}

FLUID_AMX_ENTRY void store_amx_results(const AmxResults& r) {
  for (size_t i = 0; i < r.rows.size(); ++i) {
    if (r.rows[i] < 0) continue;
    const auto row = static_cast<int64_t>(i);
    const int64_t first = row / kAmxSide * r.sums_row + row % kAmxSide * kAmxSide;
    uint16_t* const to = r.results + r.rows[i] * r.stride;
    for (int64_t column = 0; column < r.columns; column += 2 * kAmxSide) {
      const bool has_second = column + kAmxSide < r.columns;
      const bool reads_second = has_second || r.interleaves_tiles;
      __m512 y[2] = {_mm512_setzero_ps(), _mm512_setzero_ps()};
      if (r.sums != nullptr) {
        const float* const sums = r.sums + first + column / kAmxSide * kAmxTileValues;
        y[0] = _mm512_loadu_ps(sums);
        if (reads_second) y[1] = _mm512_loadu_ps(sums + kAmxTileValues);
      }
      if (r.interleaves_tiles) {
        const __m512 low = _mm512_shuffle_f32x4(y[0], y[1], 0x44);
        const __m512 high = _mm512_shuffle_f32x4(y[0], y[1], 0xee);
        y[0] = _mm512_shuffle_f32x4(low, low, 0xd8);
        y[1] = _mm512_shuffle_f32x4(high, high, 0xd8);
      }
      store_columns(r, column, y[0], to);
      if (has_second) store_columns(r, column + kAmxSide, y[1], to);
    }
  }
}

FLUID_AMX_ENTRY void sum_amx_ranges(const float* sums, int64_t ranges, int64_t stride,
                                    uint16_t* to) {
  for (int64_t i = 0; i < kAmxTileValues; i += kAmxSide) {
    __m512 total = _mm512_loadu_ps(sums + i);
    for (int64_t range = 1; range < ranges; ++range)
      total += _mm512_loadu_ps(sums + range * stride + i);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i), (__m256i)_mm512_cvtneps_pbh(total));
  }
}

}  // namespace fluid

#else

namespace fluid {
namespace {

[[noreturn]] void fail() { throw InternalError("AMX kernels on another processor"); }

}  // namespace

void with_amx_tiles(void (*)(void*), void*) { fail(); }
void add_amx_product(const AmxProduct&) { fail(); }
void pack_amx_columns(const AmxChannels&, uint16_t*, int64_t) { fail(); }
void pack_amx_rows(const AmxChannels&, uint16_t*, int64_t) { fail(); }
void copy_amx_matrix(const AmxMatrix&, uint16_t*, int64_t) { fail(); }
void transpose_amx_matrix(const AmxMatrix&, uint16_t*, int64_t) { fail(); }
void pack_amx_terms(const uint16_t*, const uint16_t*, int64_t, int64_t, uint16_t*) { fail(); }
void store_amx_results(const AmxResults&) { fail(); }
void sum_amx_ranges(const float*, int64_t, int64_t, uint16_t*) { fail(); }

}  // namespace fluid

#endif
