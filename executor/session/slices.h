#pragma once

#include <cstdint>
#include <vector>

#include "passes/options.h"

namespace fluid {

/// Consecutive samples of a batch, and the part of the step that they go through.
struct SliceOfBatch {
  Slice slice = Slice::whole;
  int64_t first = 0;
  int64_t samples = 0;
  /// The options of its executable, given those of the whole step.
  Options options(Options step) const;
};

/// Cuts `batch` samples into `count` slices, as evenly as possible and the larger ones first; into
/// fewer where there are fewer samples. Of no sample comes one empty slice.
std::vector<SliceOfBatch> slices_of(int64_t batch, int64_t count);

}  // namespace fluid
