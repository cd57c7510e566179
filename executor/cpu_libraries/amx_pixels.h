#pragma once

// Convolutions and the gradients of their inputs in bf16, as matrix products by tiles. The rows of
// the left factor are the values that a result reads; they are copied for a few results at a time.

#include "executor/cpu_libraries/amx_rows.h"
#include "executor/cpu_libraries/library.h"

namespace fluid {

/// Terms of the sums that are added at a time.
struct AmxStrip {
  int64_t first_step, steps;  ///< products of tiles
  std::vector<AmxRun> runs;   ///< in order of their terms
};

/// The shapes of a kernel, and the memory that it needs.
class AmxPixelsPlan {
 public:
  explicit AmxPixelsPlan(DirectProblem p);

  int64_t workspace() const;
  /// Returns the routine of the kernel. `plan` must be this object.
  static LibraryRoutine routine(std::shared_ptr<const AmxPixelsPlan> plan);
  double predicted_seconds(double flops_per_second, double bytes_per_second) const;

  struct Phase {
    AmxPhase results;
    int64_t steps;    ///< products of tiles of a sum
    int64_t filters;  ///< distance in values of the phase's filters from the first
    std::vector<AmxStrip> strips;
  };

  const DirectProblem problem;
  std::vector<Phase> phases;
  int64_t filter_values = 0;  ///< of all phases: [column tile][step][pair of terms][column][2]
  int64_t column_tiles;       ///< of the result channels
  int64_t group_tiles;        ///< column tiles that a task computes together
  int64_t block_pixels;       ///< pixels that a task computes together
  int64_t workers;            ///< threads that have sums of their own

  int64_t groups() const;
  int64_t blocks(const Phase& phase) const;
  int64_t sums_values() const;  ///< of a worker: [row tile][column tile][16][16]
};

}  // namespace fluid
