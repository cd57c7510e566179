#pragma once

#include "ops/table.h"

namespace fluid {

/// Contracts multiply-adds: a * b + c becomes fma(a, b, c), and a sum's body a * b becomes
/// Scalar::product. Works on the expressions of one op, before other ops are inlined. So an op
/// rounds the same in every kernel that it is fused into. LLVM itself contracts nothing.
void contract(Lowered& lowered);

}  // namespace fluid
