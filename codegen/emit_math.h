#pragma once

#include "codegen/llvm_headers.h"
#include "ops/expr.h"

namespace fluid::emit {

/// Elementary functions of f32 and f64 scalars and vectors as polynomials, without calls: f32
/// within 2 ulp, f64 within 4 ulp, right at infinities, NaNs, zeros and denormals. `op` is one of
/// exp, expm1, log, log1p, tanh, erf, sigmoid, sin, cos.
llvm::Value* elementary(llvm::IRBuilder<>& b, Scalar op, llvm::Value* x);
/// x to the y, with the special cases of C's pow (ISO C99, F.9.4.4).
llvm::Value* power(llvm::IRBuilder<>& b, llvm::Value* x, llvm::Value* y);

}  // namespace fluid::emit
