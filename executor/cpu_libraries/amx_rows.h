#pragma once

// Copies what the results of a convolution read to rows of terms, the left factors of
// amx_product.h, for CPUs that support amx.h.

#include <span>

#include "executor/cpu_libraries/amx_geometry.h"

namespace fluid {

/// Adjacent values that a result reads: a part of the channels of a row of taps.
struct AmxRun {
  AmxTap first;          ///< the row's first tap
  int64_t taps;          ///< taps of the row
  int64_t begin, count;  ///< values, counted from channel 0 of the first tap
};

struct AmxRows {
  const uint16_t* source;
  int64_t height, width, channels;  ///< of the source images
  std::span<const AmxRun> runs;
  int64_t terms;  ///< of a row; those behind the runs are zeros
  uint16_t* rows;
  int64_t stride;  ///< values between adjacent rows
};

/// Stores a row for each of `pixels`. Values outside the images are zeros.
void copy_amx_rows(const AmxRows& r, std::span<const AmxPixel> pixels);

}  // namespace fluid
