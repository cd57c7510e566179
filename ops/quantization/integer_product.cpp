#include "ops/quantization/integer_product.h"

#include <algorithm>

#include "ops/nn/axis.h"
#include "ops/nn/conv.h"
#include "ops/operators.h"
#include "ops/quantization/quantization.h"

namespace fluid {
namespace {

bool is_conv(const ir::Op& op) { return op.name == "conv2d"; }

Value operand_or_null(const ir::Op& op, size_t i) {
  return i < op.operands.size() ? op.operands[i] : Value();
}

/// Shape of one element per output channel of `op`, as broadcast with the result.
Shape channel_shape(const ir::Op& op, const Dim& channels) {
  return is_conv(op) ? Shape{channels, 1, 1} : Shape{channels};
}

/// Sums the weight `w` of i8 over all axes except `axis`.
Value channel_sums(Value w, size_t axis) {
  Ints axes;
  for (size_t d = 0; d < w.shape().size(); ++d) {
    if (d != axis) axes.push_back(static_cast<int64_t>(d));
  }
  return sum(cast(w, f32), {.axes = axes});
}

Value record_sums(const ir::Op& op, Value a, Value w) {
  ir::Graph& graph = *a.op()->graph();
  if (is_conv(op)) return record(graph, "conv2d_int8", {a, w}, conv_attrs_of(op.attrs), op.loc)[0];
  const Attrs attrs = {{"transpose_b", op.attrs.get<bool>("transpose_b")}};
  return record(graph, "matmul_int8", {a, w}, attrs, op.loc)[0];
}

/// Whether operand 0 of `op`, dequantized from `x`, may be replaced by the integers.
bool is_usable_input(const ir::Op& op, const Dequantized& x) {
  return is_8bit_integer(x.integers.dtype()) && !x.axis &&
         (!x.zero_point || (has_one_element(x.zero_point.type()) && reads_no_padding(op)));
}

}  // namespace

std::optional<Dequantized> dequantized(const Value& v) {
  const ir::Op& op = *v.op();
  if (op.name != "dequantize") return std::nullopt;
  Dequantized d{op.operands[0], op.operands[1], operand_or_null(op, 2), {}};
  if (!has_one_element(d.scale.type()))
    d.axis = static_cast<size_t>(axis_of(op.attrs, d.integers.shape().rank()));
  return d;
}

std::optional<Quantized> quantized(const ir::Op& op) {
  if (op.name != "quantize" || !has_one_element(op.operands[1].type())) return std::nullopt;
  const Value zero_point = operand_or_null(op, 2);
  if (zero_point && !has_one_element(zero_point.type())) return std::nullopt;
  return Quantized{op.operands[1], zero_point, op.results[0].type.dtype};
}

std::optional<size_t> output_axis_of_weight(const ir::Op& op) {
  if (is_conv(op) && op.operands[1].dtype() == f32 && op.attrs.get<int64_t>("groups") == 1)
    return 0;
  const bool is_product = op.name == "matmul" && op.operands[1].dtype() == f32 &&
                          op.operands[1].shape().rank() == 2 && !op.attrs.get<bool>("transpose_a");
  if (!is_product) return std::nullopt;
  return op.attrs.get<bool>("transpose_b") ? 0 : 1;
}

bool reads_no_padding(const ir::Op& op) {
  if (!is_conv(op)) return true;
  return std::ranges::all_of(op.attrs.get<std::vector<int64_t>>("padding"),
                             [](int64_t n) { return n == 0; });
}

std::optional<IntegerProduct> record_integer_product(const ir::Op& op) {
  const std::optional<size_t> axis = output_axis_of_weight(op);
  if (!axis) return std::nullopt;
  const auto w = dequantized(op.operands[1]);
  if (!w || w->integers.dtype() != i8 || w->zero_point || (w->axis && *w->axis != *axis))
    return std::nullopt;
  const auto x = dequantized(op.operands[0]);
  if (x ? !is_usable_input(op, *x) : is_conv(op)) return std::nullopt;
  const Shape per_channel = channel_shape(op, w->integers.shape()[*axis]);
  const auto broadcastable = [&](Value v) {
    return reshape(v, has_one_element(v.type()) ? Shape(per_channel.size(), Dim(1)) : per_channel);
  };
  IntegerProduct product{record_sums(op, x ? x->integers : op.operands[0], w->integers),
                         broadcastable(w->scale), Value()};
  if (x) product.scale = product.scale * broadcastable(x->scale);
  if (product.scale.shape() != per_channel)
    product.scale = broadcast_to(product.scale, per_channel);
  if (!x || !x->zero_point) return product;
  const Value sums = broadcastable(channel_sums(w->integers, *axis));
  product.shift = -(sums * product.scale * broadcastable(cast(x->zero_point, f32)));
  return product;
}

}  // namespace fluid
