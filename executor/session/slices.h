#pragma once

#include <cstdint>
#include <vector>

#include "passes/options.h"

namespace fluid {

/// A micro-batch: consecutive samples of a batch, and the part of the step that runs on them.
struct MicroBatch {
  Slice slice = Slice::whole;
  int64_t first = 0;
  int64_t samples = 0;
  /// The options of the micro-batch's executable. `step`: options of the whole step.
  Options options(Options step) const;
};

/// Splits `batch` samples into `count` micro-batches whose sizes differ by at most one, larger ones
/// first. There are fewer when `count` exceeds `batch`. Zero samples give one empty micro-batch.
std::vector<MicroBatch> split_into_micro_batches(int64_t batch, int64_t count);

}  // namespace fluid
