#pragma once

#include "ops/op_def.h"

namespace fluid {

/// Returns the FLOPs and bytes of `op` at batch size `batch`, as computed by the cost function of
/// the op's definition.
Cost cost_of(const ir::Op& op, int64_t batch);

}  // namespace fluid
