#pragma once

// The inner loops of direct.h, for CPUs that support avx512.h. Filters and their gradients have
// panels of kDirectPanel result channels.

#include <cstdint>
#include <span>

namespace fluid {

inline constexpr int64_t kDirectPanel = 64;

/// Results for some pixels and a panel: each is the sum over taps and source channels, in order.
struct DirectPixels {
  std::span<const float* const> sources;  ///< bases of the pixels in the padded source
  std::span<float* const> results;        ///< the panel's first channel of each result pixel
  std::span<const int64_t> taps;          ///< distance in values of each tap from the base
  const float* filters = nullptr;         ///< [tap][source channel][kDirectPanel]
  int64_t source_channels = 0;
  int64_t columns = 0;          ///< result channels of the panel, at most kDirectPanel
  bool accumulates = false;     ///< whether the sums are added to the results
  const float* bias = nullptr;  ///< null: none
  bool relu = false;
};
void compute_direct_pixels(const DirectPixels& p);

/// Filter gradients for some taps and source channels (rows) and a panel: each is the sum over
/// pixels, in order.
struct DirectFilterRows {
  std::span<const float* const> sources;  ///< bases of the pixels in the padded source
  const float* gradients = nullptr;       ///< the panel's first channel of dy at the first pixel
  int64_t gradient_stride = 0;            ///< values between adjacent pixels of dy
  std::span<const int64_t> rows;          ///< distance in values of each row from the base
  float* result = nullptr;                ///< [row][kDirectPanel]
  int64_t columns = 0;                    ///< result channels of the panel
  bool accumulates = false;               ///< whether the sums are added to the results
};
void accumulate_direct_filter(const DirectFilterRows& p);

}  // namespace fluid
