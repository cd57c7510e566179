#pragma once

#include "ops/op_def.h"

namespace fluid {

/// Fails unless operand 0 is float [..., C] and operand 1 holds one integer class per row.
void require_labels(const InferCtx& c);

/// Reshapes `x`, one value per row, to [..., 1], so that it broadcasts with rows [..., C].
Value unsqueeze_last(Value x);

}  // namespace fluid
