#pragma once

#include "codegen/llvm_headers.h"
#include "ops/expr.h"

namespace fluid::emit {

/// Emits an elementary function of an f32 or f64 scalar or vector as inline polynomial
/// approximations, without calls. `op` is exp, exp2, expm1, log, log2, log1p, sinh, cosh, tanh,
/// erf, sigmoid or an op of emit_trigonometric_function(). For every argument, the error is within
/// 2 ulp for f32 and 4 ulp for f64. Infinities, NaNs, zeros and subnormals are handled as in the C
/// library (ISO C99, F.9). `avx512`: whether the target has AVX-512 F and VL; the results are the
/// same.
llvm::Value* emit_elementary_function(llvm::IRBuilder<>& b, ScalarOp op, llvm::Value* x,
                                      bool avx512);
/// Emits sin, cos, tan, asin, acos or atan of `x`, with the error bounds of
/// emit_elementary_function().
llvm::Value* emit_trigonometric_function(llvm::IRBuilder<>& b, ScalarOp op, llvm::Value* x);
/// Emits x to the power y, with the special cases of pow() in C (ISO C99, F.9.4.4).
llvm::Value* emit_pow(llvm::IRBuilder<>& b, llvm::Value* x, llvm::Value* y);
/// Emits the exact remainder of x / y with the sign of y, as Python's % and torch.remainder. NaN if
/// x is infinite or y is 0.
llvm::Value* emit_float_mod(llvm::IRBuilder<>& b, llvm::Value* x, llvm::Value* y);

}  // namespace fluid::emit
