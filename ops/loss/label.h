#pragma once

#include "ops/op_def.h"

namespace fluid {

/// Throws UserError unless operand 0 holds float rows [..., C] and operand 1 holds one integer
/// class index per row.
void require_labels(const InferCtx& c);

}  // namespace fluid
