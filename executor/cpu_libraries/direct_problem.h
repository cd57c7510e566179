#pragma once

// Convolutions as sums of matrix products, one per tap of the filter. A product reads the pixels of
// a padded copy of the source image at a constant distance from each result.

#include <vector>

#include "executor/cpu_libraries/convolution_task.h"

namespace fluid {

/// A tap of a filter along one axis, and the distance between the element that it reads and the
/// base of a result.
struct DirectTap {
  int64_t tap, offset;
};

/// The results along an axis that use the same taps. Result element first + i * step has its base
/// at element base + i * base_step of the padded source.
struct DirectPhase {
  int64_t first, step, count;
  int64_t base, base_step;
  std::vector<DirectTap> taps;
};

/// A convolution along one axis. Its only phase has all taps. The gradient with respect to the
/// input of a convolution with stride s has s phases.
struct DirectAxis {
  int64_t source, result;  ///< elements of the images that are read and written
  int64_t low;             ///< source element at the start of the padded source
  int64_t padded;          ///< elements of the padded source
  std::vector<DirectPhase> phases;

  bool needs_padding() const { return low < 0 || low + padded > source; }
};

/// Returns an axis of a convolution of `in` to `out` elements; of the gradient with respect to its
/// input if `input_gradient`.
DirectAxis direct_axis(const WindowAxis& window, int64_t in, int64_t out, bool input_gradient);

/// A convolution reads source images and writes result images. The input gradient reads dy and
/// writes dx. The filter gradient reads x as its source, and dy in place of its result.
struct DirectProblem {
  ConvDirection direction;
  int64_t images;
  DirectAxis y, x;
  int64_t out_channels, in_channels, kernel_y, kernel_x;
  bool bias, relu;

  bool is_input_gradient() const { return direction == ConvDirection::input_gradient; }
  int64_t source_channels() const { return is_input_gradient() ? out_channels : in_channels; }
  int64_t result_channels() const { return is_input_gradient() ? in_channels : out_channels; }
  bool is_filter_gradient() const { return direction == ConvDirection::filter_gradient; }
  int64_t result_pixels() const { return images * y.result * x.result; }
  int64_t taps() const { return kernel_y * kernel_x; }
};

/// Returns the problem of a convolution without groups.
DirectProblem direct_problem(const ConvolutionTask& task);

}  // namespace fluid
