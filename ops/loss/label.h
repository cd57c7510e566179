#pragma once

#include "ops/op_def.h"

namespace fluid {

/// Throws UserError unless operand 0 holds float rows [..., C] and operand 1 holds one integer
/// class index per row.
void require_labels(const InferCtx& c);

/// Appends a dimension of extent 1 to `x`, which holds one value per row. The result broadcasts
/// with the rows [..., C].
Value unsqueeze_last(Value x);

}  // namespace fluid
