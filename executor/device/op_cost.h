#pragma once

#include "ops/op_def.h"

namespace fluid {

/// Evaluates the cost function of `op` for `batch` samples.
Cost cost_of(const ir::Op& op, int64_t batch);

}  // namespace fluid
