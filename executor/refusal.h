#pragma once

#include "executor/device.h"
#include "ir/error.h"
#include "ir/tensor.h"

namespace fluid {

/// What a kernel got, when it refused its data.
struct RefusedFeeds {
  const Batch& feeds;    ///< as the kernels read them
  int64_t first = 0;     ///< of these samples in the batch
  bool went_on = false;  ///< another step was begun meanwhile, which was not applied either
};

/// What a user can do about data that a kernel refused: the recorded op and line, the index and
/// what it may be, and the feed that holds it, if it is not computed.
UserError refusal(const Status& status, const RefusedFeeds& given);

}  // namespace fluid
