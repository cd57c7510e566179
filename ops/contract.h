#pragma once

#include "ops/table.h"

namespace fluid {

/// Contracts multiply-adds to fma operations: a * b + c becomes fma(a, b, c), and the body a * b of
/// a sum reduction becomes ScalarOp::product. Runs on the expressions of a single op before they
/// are inlined into others. So the op rounds in the same way in every fused kernel. LLVM's own
/// contraction is off.
void contract_to_fma(Lowered& lowered);

}  // namespace fluid
