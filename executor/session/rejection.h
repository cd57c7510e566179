#pragma once

#include <cstdint>

#include "executor/device/device.h"
#include "executor/options/sample_finder.h"
#include "ir/error.h"
#include "ir/tensor.h"

namespace fluid {

/// The feeds of a step whose data a kernel rejected.
struct RejectedFeeds {
  const Batch& feeds;    ///< in the dtypes and scaling that the kernels read
  int64_t first = 0;     ///< position of the first of these samples in the batch
  bool went_on = false;  ///< a later step was already in flight; it was not applied either
  const SampleFinder& find_sample;  ///< may be empty
};

/// The error for data that a kernel rejected. Its message names the recorded op, its source line,
/// the index and its valid range. It names the feed that holds the index, unless the index is
/// computed.
UserError refusal(const Status& status, const RejectedFeeds& given);

/// A rejected step and the call that reports its error, identified by step numbers.
struct RejectedStep {
  uint64_t number = 0;
  uint64_t reported_by =
      0;              ///< the step whose run() reports the error; 0: a call that runs no step
  uint64_t last = 0;  ///< number of the last started step
};

/// Prefixes `refusal` with the position of the rejected step, unless the reporting call runs it.
UserError with_step_position(const UserError& refusal, const RejectedStep& step);

}  // namespace fluid
