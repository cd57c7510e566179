#pragma once

#include <optional>

#include "ir/graph.h"

namespace fluid {

/// The operands of a `dequantize` op: a float tensor (integers - zero_point) * scale.
struct Dequantized {
  Value integers, scale;
  Value zero_point;            ///< null: 0
  std::optional<size_t> axis;  ///< axis of the elements of scale; nullopt: scale has one element
};
/// Returns the operands of the `dequantize` op that produces `v`; nullopt for other values.
std::optional<Dequantized> dequantized(const Value& v);

/// The operands of a `quantize` op whose scale has one element.
struct Quantized {
  Value scale;
  Value zero_point;  ///< null: 0
  DType to;          ///< i8 or u8
};
/// Returns the operands of `op`, a `quantize` op whose scale has one element; nullopt for other
/// ops.
std::optional<Quantized> quantized(const ir::Op& op);

/// Returns the axis of operand 1 whose indices are those of the output channels. Returns nullopt
/// unless `op` is an f32 conv2d without groups, or an f32 matmul with a matrix as operand 1: ops
/// that may compute with a weight of i8.
std::optional<size_t> output_axis_of_weight(const ir::Op& op);

/// Whether the padding of `op` is zero, so that its sums read no padding.
bool reads_no_padding(const ir::Op& op);

/// sums * scale + shift, where `sums` are sums of products of 8-bit integers.
struct IntegerProduct {
  Value sums;
  Value scale;  ///< one element per output channel; broadcasts with sums
  Value shift;  ///< like scale; null: 0
};
/// If operand 1 of `op` is a dequantized weight of i8, records the op on the integers:
/// `conv2d_int8` or `matmul_int8`. Operand 0 must be dequantized, too; for matmul it may be any f32
/// matrix. Returns nullopt if `op` has no such form: with a scale along another axis than that of
/// the output channels, with a zero point of the weight, or with one of operand 0 in a padded
/// convolution, whose padding is 0 and not the zero point.
std::optional<IntegerProduct> record_integer_product(const ir::Op& op);

}  // namespace fluid
