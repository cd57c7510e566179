#pragma once

#include <cstdint>

#include "executor/device/device.h"
#include "executor/options/sample_finder.h"
#include "ir/error.h"
#include "ir/tensor.h"

namespace fluid {

/// What a kernel got, when it refused its data.
struct RefusedFeeds {
  const Batch& feeds;    ///< as the kernels read them
  int64_t first = 0;     ///< of these samples in the batch
  bool went_on = false;  ///< another step was begun meanwhile, which was not applied either
  const SampleFinder& find_sample;  ///< may be empty
};

/// What a user can do about data that a kernel refused: the recorded op and line, the index and
/// what it may be, and the feed that holds it, if it is not computed.
UserError refusal(const Status& status, const RefusedFeeds& given);

/// A step that was refused, and whose call hears of it; by their numbers.
struct RefusedStep {
  uint64_t number = 0;
  uint64_t heard_by = 0;  ///< 0: a call that is no step's, as one that reads a variable
  uint64_t last = 0;      ///< that was begun
};

/// What a refusal says there: also of which step it is, where that is another one.
UserError heard(const UserError& refusal, const RefusedStep& step);

}  // namespace fluid
