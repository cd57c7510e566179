#pragma once

#include "ops/op_def.h"

namespace fluid {

/// Requires operand 1 to hold one integer class for every row of operand 0, a float [..., C].
void require_labels(const InferCtx& c);

/// `x`, one number a row, against rows [..., C]: with a last dimension of 1.
Value as_column(Value x);

}  // namespace fluid
