#pragma once

// The pixels that a convolution reads for its results. Images are NHWC without padding.

#include <vector>

#include "executor/cpu_libraries/direct_problem.h"

namespace fluid {

/// A tap of a filter, and the distance between the pixel that it reads and the base of a result.
struct AmxTap {
  int64_t tap;       ///< index in the filter
  int64_t y, x;      ///< in pixels
  int64_t distance;  ///< in values
};

/// Taps that read adjacent pixels of a row, from left to right.
struct AmxTapRow {
  size_t first, count;  ///< in AmxPhase::taps()
};

/// The base of a result in its source image, and the index of the result among all pixels.
struct AmxPixel {
  int64_t y, x;
  int64_t offset;  ///< distance in values from the first image
  int64_t result;
};

/// The results of a phase of both axes.
class AmxPhase {
 public:
  AmxPhase(const DirectProblem& problem, const DirectPhase& y, const DirectPhase& x);

  int64_t pixels() const { return pixels_; }  ///< of all images
  /// In order of their pixels.
  const std::vector<AmxTap>& taps() const { return taps_; }
  const std::vector<AmxTapRow>& tap_rows() const { return tap_rows_; }
  int64_t height() const { return height_; }  ///< of the source
  int64_t width() const { return width_; }
  /// Stores pixels [begin, begin + n) in `to`.
  void store_pixels(int64_t begin, int64_t n, AmxPixel* to) const;
  /// Returns the distance in values of the pixel that `tap` reads from the first image; -1 if it is
  /// outside the image.
  int64_t offset(const AmxPixel& pixel, const AmxTap& tap) const {
    const auto y = static_cast<uint64_t>(pixel.y + tap.y);
    const auto x = static_cast<uint64_t>(pixel.x + tap.x);
    const bool is_inside = y < static_cast<uint64_t>(height_) && x < static_cast<uint64_t>(width_);
    return is_inside ? pixel.offset + tap.distance : -1;
  }

 private:
  DirectPhase y_, x_;
  int64_t low_y_, low_x_;
  int64_t height_, width_, channels_;  ///< of the source
  int64_t result_height_, result_width_;
  int64_t pixels_;
  std::vector<AmxTap> taps_;
  std::vector<AmxTapRow> tap_rows_;
};

/// Returns all pairs of phases. Those of a filter gradient are a single pair.
std::vector<AmxPhase> amx_phases(const DirectProblem& problem);

}  // namespace fluid
