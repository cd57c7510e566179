#pragma once

#include "executor/device.h"
#include "ir/error.h"
#include "ir/tensor.h"

namespace fluid {

/// What a user can do about data that a kernel refused: the recorded op and line, the index and
/// what it may be, and the feed that holds it, if it is not computed.
UserError refusal(const Status& status, const Batch& batch);

}  // namespace fluid
