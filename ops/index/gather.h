#pragma once

#include "ops/op_def.h"

namespace fluid {

/// Cost of a gather. Each element of the result reads one index from operand 1 and one element of
/// operand 0. Elements of operand 0 that no index addresses are not read.
Cost gather_cost(const CostCtx& c);

}  // namespace fluid
