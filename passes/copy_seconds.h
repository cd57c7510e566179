#pragma once

#include "passes/target.h"

namespace fluid {

/// Returns the predicted seconds of a generated kernel that copies `v` at batch size `batch`.
double copy_seconds(Value v, int64_t batch, const Target& target);

}  // namespace fluid
