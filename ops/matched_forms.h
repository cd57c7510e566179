#pragma once

#include "ir/graph.h"

namespace fluid {

// Forms of ops that kernels and passes recognise by the ops' lowered expressions.

/// Whether the op computes max(x, 0) of its only operand.
bool is_relu(const ir::Op& op);
/// Whether the op rounds its only operand half to even and converts it to i8 or u8, which
/// saturates.
bool is_round_saturate(const ir::Op& op);

}  // namespace fluid
