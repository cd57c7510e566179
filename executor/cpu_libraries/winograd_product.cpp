#include "executor/cpu_libraries/winograd_product.h"

#include <algorithm>

#include "executor/cpu_libraries/divide_up.h"
#include "ir/error.h"

namespace fluid {
namespace {

constexpr int kMaxVectors = kWinogradPanel / kWinogradLanes;

/// Returns the number of rows of a tile of `vectors` vectors. Its accumulators, one row of the
/// right matrix and a broadcast element of the left one take up to 29 of the 32 registers.
constexpr int tile_rows(int vectors) { return vectors > 2 ? 6 : 12; }

// Rows of a block. The rows of a transposed left matrix are the columns of one of its panels.
constexpr int64_t kBlockRows = 48;

int64_t block_rows(const WinogradProduct& p) {
  return p.transposes_left ? kWinogradPanel : kBlockRows;
}
int64_t row_blocks(const WinogradProduct& p) { return divide_up(p.rows, block_rows(p)); }
int64_t panels(const WinogradProduct& p) { return divide_up(p.columns, kWinogradPanel); }

}  // namespace

int64_t WinogradProduct::blocks() const { return planes * panels(*this) * row_blocks(*this); }

void add_winograd(const WinogradPlanes& from, const WinogradPlanesShape& shape, int64_t rows,
                  const WinogradPlanes& to) {
  for (int64_t panel = 0; panel < shape.panels(); ++panel) {
    const float* const values = from.at(panel * kWinogradPanel);
    float* const sums = to.at(panel * kWinogradPanel);
    for (int64_t i = 0; i < rows * shape.width(); ++i) sums[i] += values[i];
  }
}

}  // namespace fluid

#if defined(__x86_64__)
#include "executor/cpu_libraries/avx512.h"

namespace fluid {
namespace {

/// The product of some rows and a panel.
struct PanelProduct {
  const float *left, *right;
  float* result;
  int64_t left_width, left_panel_stride, right_width, result_width;
  int64_t terms;
  bool accumulates;
};

/// Computes kRows x 16 kVectors results at the start of `p.result`.
template <bool kTransposesLeft, int kRows, int kVectors>
FLUID_AVX512 void multiply_tile(const PanelProduct& p) {
  __m512 sums[kRows][kVectors];
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) {
      sums[r][v] = p.accumulates
                       ? _mm512_loadu_ps(p.result + r * p.result_width + v * kWinogradLanes)
                       : _mm512_setzero_ps();
    }
  }
  const int64_t next_row = kTransposesLeft ? 1 : p.left_width;
  const int64_t next_term = kTransposesLeft ? p.left_width : 1;
  const int64_t panel_terms = kTransposesLeft ? p.terms : kWinogradPanel;
  const float* right = p.right;
  const float* panel = p.left;
  for (int64_t first = 0; first < p.terms; first += panel_terms) {
    const float* left = panel;
    panel += p.left_panel_stride;
    for (int64_t k = std::min(panel_terms, p.terms - first); k > 0; --k) {
      __m512 row[kVectors];
      for (int v = 0; v < kVectors; ++v) row[v] = _mm512_loadu_ps(right + v * kWinogradLanes);
      for (int r = 0; r < kRows; ++r) {
        const __m512 factor = _mm512_set1_ps(left[r * next_row]);
        for (int v = 0; v < kVectors; ++v) sums[r][v] = _mm512_fmadd_ps(factor, row[v], sums[r][v]);
      }
      left += next_term;
      right += p.right_width;
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) {
      _mm512_storeu_ps(p.result + r * p.result_width + v * kWinogradLanes, sums[r][v]);
    }
  }
}

/// Computes `rows` rows of 16 kVectors results, for rows <= kRows.
template <bool kTransposesLeft, int kVectors, int kRows = tile_rows(kVectors)>
FLUID_AVX512 void multiply_rest(const PanelProduct& p, int64_t rows) {
  if constexpr (kRows > 0) {
    if (rows == kRows) return multiply_tile<kTransposesLeft, kRows, kVectors>(p);
    multiply_rest<kTransposesLeft, kVectors, kRows - 1>(p, rows);
  }
}

template <bool kTransposesLeft, int kVectors>
FLUID_AVX512_ENTRY void multiply_panel(PanelProduct p, int64_t rows) {
  constexpr int kRows = tile_rows(kVectors);
  for (; rows > 0; rows -= kRows) {
    multiply_rest<kTransposesLeft, kVectors>(p, std::min<int64_t>(rows, kRows));
    p.left += kRows * (kTransposesLeft ? 1 : p.left_width);
    p.result += kRows * p.result_width;
  }
}

template <bool kTransposesLeft>
constexpr void (*kMultiplyPanel[])(PanelProduct, int64_t) = {
    multiply_panel<kTransposesLeft, 1>, multiply_panel<kTransposesLeft, 2>,
    multiply_panel<kTransposesLeft, 3>, multiply_panel<kTransposesLeft, kMaxVectors>};

}  // namespace

void multiply_winograd(const WinogradProduct& p, int64_t begin, int64_t end) {
  for (int64_t block = begin; block < end; ++block) {
    const int64_t row = block % row_blocks(p) * block_rows(p);
    const int64_t column = block / row_blocks(p) % panels(p) * kWinogradPanel;
    const int64_t plane = block / row_blocks(p) / panels(p);
    const WinogradPlanes left = p.left.from_plane(plane), right = p.right.from_plane(plane),
                         result = p.result.from_plane(plane).from_row(row);
    const int64_t columns = std::min(p.columns - column, kWinogradPanel);
    const int64_t vectors = divide_up(columns, kWinogradLanes);
    const PanelProduct part = {.left = p.transposes_left ? left.at(row) : left.from_row(row).data,
                               .right = right.at(column),
                               .result = result.at(column),
                               .left_width = left.width,
                               .left_panel_stride = left.panel_stride,
                               .right_width = right.width,
                               .result_width = result.width,
                               .terms = p.terms,
                               .accumulates = p.accumulates};
    const auto& multiply = p.transposes_left ? kMultiplyPanel<true> : kMultiplyPanel<false>;
    multiply[vectors - 1](part, std::min(p.rows - row, block_rows(p)));
  }
}

}  // namespace fluid

#else

namespace fluid {

void multiply_winograd(const WinogradProduct&, int64_t, int64_t) {
  throw InternalError("Winograd's products on another processor");
}

}  // namespace fluid

#endif
