#pragma once

#include "ops/op_def.h"

namespace fluid {

/// Whether `dtype` is i8 or u8.
bool is_8bit_integer(DType dtype);

/// Whether a scale or a zero point of this type is one element, for the whole tensor.
bool has_one_element(const Type& type);

/// Returns the dtype of attribute `to`. Throws UserError unless it is i8 or u8.
DType require_8bit_result(const InferCtx& c);

/// Throws UserError unless scale (operand 1) and zero point (operand 2, optional) fit the tensor
/// operand 0: one element each, or one per index of attribute `axis`, and a zero point of dtype
/// `quantized`.
void require_quantization(const InferCtx& c, DType quantized);

/// Reads operand `i`, a scale or a zero point, for the result element: its only element, or the
/// element for the index along attribute `axis`.
Expr read_quantization(const LowerCtx& c, size_t i);

/// Rounds x, a float, half to even, adds `zero_point` (null: 0) and converts the sum to `to`, i8
/// or u8. Values beyond the range of `to` saturate. NaN becomes 0.
Expr round_and_saturate(const Expr& x, const Expr& zero_point, DType to);

}  // namespace fluid
