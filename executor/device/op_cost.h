#pragma once

#include "ops/op_def.h"

namespace fluid {

/// What `op` costs for `batch` samples, by its definition.
Cost cost_of(const ir::Op& op, int64_t batch);

}  // namespace fluid
