#pragma once

// The images of a direct convolution: padded copies of its source, and the addresses of pixels.

#include <span>
#include <vector>

#include "executor/cpu_libraries/direct_padding.h"

namespace fluid {

/// The results of a phase of both axes.
struct DirectPhases {
  const DirectPhase &y, &x;
  int64_t pixels;                ///< of all images
  std::vector<int64_t> taps;     ///< index of each tap in the filter
  std::vector<int64_t> offsets;  ///< distance in values of each tap from the base of a pixel
};

class DirectImages {
 public:
  explicit DirectImages(const DirectProblem& problem);

  int64_t padded_bytes() const;  ///< 0: the source needs no padding
  /// Rows of all padded images.
  int64_t padded_rows() const { return pads_ ? problem_.images * height_ : 0; }
  /// Copies rows [begin, end) of the padded images of `source` to `padded`.
  void pad_rows(const float* source, float* padded, int64_t begin, int64_t end) const {
    pad_direct_rows(problem_, source, padded, begin, end);
  }

  /// All pairs of phases. Those of a filter gradient are a single pair.
  const std::vector<DirectPhases>& phases() const { return phases_; }
  /// Stores the addresses of pixels [begin, begin + n) of some phases. `sources`: their bases in
  /// the padded images at `padded`, or in the source if it needs no padding. `results`: the results
  /// from channel `channel` on of the images at `result`; may be null.
  void addresses(const DirectPhases& phases, int64_t begin, int64_t n, const float* padded,
                 const float** sources, float* result, int64_t channel, float** results) const;

 private:
  DirectPhases phases_of(const DirectPhase& y, const DirectPhase& x) const;

  const DirectProblem& problem_;
  bool pads_;
  int64_t height_, width_;  ///< of the padded source, or of the source
  std::vector<DirectPhases> phases_;
  int64_t low_y_ = 0, low_x_ = 0;  ///< the base of a pixel without padding is that much further
};

}  // namespace fluid
