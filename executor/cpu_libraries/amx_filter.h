#pragma once

// Gradients of the filters of convolutions in bf16, as matrix products by tiles whose terms are
// pixels. The left factor is dy, with the output channels as rows. The columns of the right factor
// are the channels of each tap.

#include "executor/cpu_libraries/amx_geometry.h"
#include "executor/cpu_libraries/amx_product.h"
#include "executor/cpu_libraries/library.h"

namespace fluid {

/// The shapes of a kernel, and the memory that it needs.
class AmxFilterPlan {
 public:
  explicit AmxFilterPlan(DirectProblem p);

  int64_t workspace() const;
  int64_t padded_values() const;  ///< of all images; 0: they are not padded
  /// Returns the routine of the kernel. `plan` must be this object.
  static LibraryRoutine routine(std::shared_ptr<const AmxFilterPlan> plan);
  double predicted_seconds(double flops_per_second, double bytes_per_second) const;

  static constexpr int64_t kStripPixels = 256;
  static constexpr int64_t kBlock = 2 * kAmxSide;  ///< channels of a block, which fills two tiles

  const DirectProblem problem;
  /// Whether the taps of a row are columns side by side, in padded images. Otherwise the few
  /// channels of each tap would leave most of a block unused.
  bool merges_taps;
  const AmxPhase pixels;
  int64_t row_blocks;    ///< of the output channels
  int64_t taps_per_row;  ///< taps whose channels are columns side by side
  int64_t tap_blocks;    ///< blocks of these columns
  int64_t strips;        ///< of kStripPixels pixels
  int64_t ranges;        ///< of strips; the sums of each are added up on their own
  int64_t group_blocks;  ///< blocks of columns that a task computes

  int64_t row_columns() const { return taps_per_row * problem.in_channels; }
  /// Blocks of columns, those of all rows of taps.
  int64_t column_blocks() const {
    return static_cast<int64_t>(pixels.taps().size()) / taps_per_row * tap_blocks;
  }
  int64_t groups() const;
  int64_t range_begin(int64_t range) const { return strips * range / ranges; }
  /// Of dy of a strip, as left factors: [row block][tile][step][kAmxSide][kAmxTerms].
  int64_t rows_values() const;
  /// Whether each range has dy of one strip at a time in memory. Otherwise several groups read dy
  /// of all strips.
  bool packs_strips_of_range() const { return groups() == 1; }
  /// Of a range: [column block][row block][row tile][column tile][kAmxSide][kAmxSide].
  int64_t sums_values() const;
};

}  // namespace fluid
