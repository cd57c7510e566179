#pragma once

#include "codegen/llvm_headers.h"
#include "ops/expr.h"

namespace fluid::emit {

/// Elementary functions of f32 and f64 scalars and vectors, as polynomials without calls. The error
/// is within 2 ulp for f32 and 4 ulp for f64. Infinities, NaNs, zeros and subnormals are handled.
/// `op` is one of exp, expm1, log, log1p, tanh, erf, sigmoid, sin, cos.
llvm::Value* elementary(llvm::IRBuilder<>& b, Scalar op, llvm::Value* x);
/// x to the power y, with the special cases of C's pow (ISO C99, F.9.4.4).
llvm::Value* power(llvm::IRBuilder<>& b, llvm::Value* x, llvm::Value* y);

}  // namespace fluid::emit
