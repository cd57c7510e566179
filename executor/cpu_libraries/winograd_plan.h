#pragma once

// How a Winograd convolution is divided among threads, and the memory that it needs.

#include "executor/cpu_libraries/winograd_problem.h"
#include "executor/cpu_libraries/winograd_product.h"

namespace fluid {

/// Ranges of tiles, which are divided into chunks. The tiles of a chunk are transformed and
/// multiplied together.
struct WinogradChunks {
  int64_t tiles;   ///< tiles of all ranges
  int64_t ranges;  ///< a filter gradient is accumulated for each range
  int64_t size;    ///< tiles of a chunk; the last chunk of a range may be smaller

  /// Returns the first tile of range `range`.
  int64_t range_begin(int64_t range) const { return tiles * range / ranges; }
  /// Number of chunks of the largest range.
  int64_t chunks_per_range() const;
};

/// The shapes and chunks of a kernel. Either each worker, a thread, processes ranges of its own,
/// whose chunks fit in its L2 cache. It reads all filters for each chunk, so they must be small. Or
/// all threads process one chunk of a single range after the other. A chunk is multiplied right
/// after its transform, while it is still in the L3 cache.
struct WinogradPlan {
  WinogradProblem problem;
  WinogradTiles tiles;
  WinogradPlanesShape filters;  ///< transformed filters, or their transformed gradient
  WinogradChunks chunks;
  int64_t workers;               ///< 1: all threads cooperate
  WinogradPlanesShape from, to;  ///< transformed tiles of a chunk

  WinogradPlan(const WinogradProblem& p, bool may_span_images);

  bool computes_filter_gradient() const {
    return problem.direction == ConvDirection::filter_gradient;
  }
  bool is_cooperative() const { return chunks.ranges == 1; }
  int64_t filter_copies() const { return computes_filter_gradient() ? chunks.ranges : 1; }
  int64_t zeros_bytes() const;  ///< bytes of a pixel of zeros
  int64_t workspace() const;
  /// Predicts the time of a call. `flops_per_second`: peak rate of all threads in f32.
  double predicted_seconds(double flops_per_second) const;
};

}  // namespace fluid
