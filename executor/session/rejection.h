#pragma once

#include <cstdint>

#include "executor/device/device.h"
#include "executor/options/sample_finder.h"
#include "ir/error.h"
#include "ir/tensor.h"

namespace fluid {

/// The feeds of a rejected step.
struct RejectedFeeds {
  const Batch& feeds;  ///< feeds as the kernels read them: converted, scaled and normalised
  int64_t first = 0;   ///< index of the first sample of `feeds` within the batch
  /// Whether a later step was in flight. If so, the later step is not applied either.
  bool later_step_in_flight = false;
  const SampleFinder& find_sample;  ///< returns the location of a sample in its file; may be empty
};

/// Builds the error for data that a kernel rejected. The message names the recorded op, its source
/// line, the index and its valid range. The message also names the feed that holds the index,
/// unless the program computes the index.
UserError rejection_error(const StepStatus& status, const RejectedFeeds& rejected);

/// Identifies a rejected step and the call that reports its error.
struct RejectedStep {
  uint64_t number = 0;
  /// Number of the step whose run() reports the error; 0 if another function reports it.
  uint64_t reported_by = 0;
  uint64_t last = 0;  ///< number of the last step that was started
};

/// Prefixes the message of `error` with a phrase such as "in the previous step: ", unless the
/// reporting call ran the rejected step itself.
UserError with_step_position(const UserError& error, const RejectedStep& step);

}  // namespace fluid
