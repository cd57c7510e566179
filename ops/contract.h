#pragma once

#include "ops/table.h"

namespace fluid {

/// Contracts multiply-adds to fma operations: a * b + c becomes fma(a, b, c), and the body a * b of
/// a sum reduction becomes ScalarOp::product. Runs on the expressions of one op before the op is
/// inlined into others, so an op rounds in the same way in every fused kernel. LLVM is not allowed
/// to contract.
void contract_to_fma(Lowered& lowered);

}  // namespace fluid
