#pragma once

#include "ops/op_def.h"

namespace fluid {

/// The windows of a max pooling along one axis.
struct ArgmaxAxis {
  Value begin;  ///< f64 [O]: index of the element that tap 0 of each window reads
  /// Kernel size along this axis. An argmax index is the row-major position in the window.
  int64_t taps = 1;
  int64_t dilation = 1;
  bool padded = false;  ///< whether tap 0 may be in the padding
};

/// Returns the elements of `x` [N, C, ...] at the argmax indices `argmax_index` of a max pooling,
/// in the shape of `argmax_index`. `axes`: one per spatial dimension. If all elements of a window
/// were -inf, reads the first tap inside of x, or returns 0 if no tap is inside.
Value gather_at_argmax(Value x, Value argmax_index, const std::vector<ArgmaxAxis>& axes);

/// Returns an f64 tensor [count] of the numbers scale * i + offset, in the graph of `like`.
Value scaled_arange(Value like, int64_t count, double scale, double offset = 0);

}  // namespace fluid
