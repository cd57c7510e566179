#pragma once

#include "ops/op_def.h"

namespace fluid {

/// The products that a matmul of operands 0 and 1 sums up, in the dtype of the result. Leading
/// dimensions broadcast.
ReduceBody matmul_body(const LowerCtx& c, bool transpose_a, bool transpose_b);

}  // namespace fluid
