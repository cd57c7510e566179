#pragma once

#include "ops/op_def.h"

namespace fluid {

/// Cost of an op that reads an element of operand 0, at an index from operand 1, for each element
/// of the result. Elements that no index addresses are not read.
Cost gather_cost(const CostCtx& c);

}  // namespace fluid
