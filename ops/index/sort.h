#pragma once

#include "ops/op_def.h"

namespace fluid {

/// Returns attribute "axis" as a non-negative index. Throws UserError (by c.fail()) unless operand
/// 0 is a numeric tensor that sort accepts.
int64_t require_sortable(const InferCtx& c);

/// Operations of a sort of operand 0 along attribute "axis".
double sort_flops(const CostCtx& c);

}  // namespace fluid
