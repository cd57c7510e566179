// Conversions between floats and 8-bit integers.

#include "frontend/onnx/context.h"
#include "ops/operators.h"

namespace fluid::onnx {
namespace {

/// Throws Unsupported for scales of blocks, and for a scale of another dtype than the floats.
void require_scale_per_axis(const Context& c, DType floats) {
  if (c.int_attr("block_size", 0) != 0) c.fail_unsupported("scales of blocks");
  const DType scale = c.input(1).dtype();
  if (scale == floats) return;
  c.fail_unsupported("a scale of " + std::string(name_of(scale)) + " for a tensor of " +
                     std::string(name_of(floats)));
}

Operands quantize_linear(const Context& c) {
  const Value x = c.input(0);
  require_scale_per_axis(c, x.dtype());
  DType to = u8;
  if (c.has_attr("output_dtype") && c.int_attr("output_dtype", 0) != 0)
    to = dtype_of(c, c.int_attr("output_dtype", 0));
  if (c.has_input(2)) to = c.input(2).dtype();
  if (to != u8 && to != i8) c.fail_unsupported("quantizes to " + std::string(name_of(to)));
  const QuantizeAttrs attrs{.to = Type{to, {}, {}}, .axis = c.int_attr("axis", 1)};
  if (!c.has_input(2)) return {quantize(x, c.input(1), attrs)};
  return {quantize(x, c.input(1), c.input(2), attrs)};
}

Operands dequantize_linear(const Context& c) {
  const DType from = c.input(0).dtype(), scale = c.input(1).dtype();
  if (from != u8 && from != i8 && from != i32)
    c.fail_unsupported("dequantizes " + std::string(name_of(from)));
  require_scale_per_axis(c, scale);
  const DequantizeAttrs attrs{.axis = c.int_attr("axis", 1)};
  if (!c.has_input(2)) return {dequantize(c.input(0), c.input(1), attrs)};
  return {dequantize(c.input(0), c.input(1), c.input(2), attrs)};
}

/// The range of x is [min(x, 0), max(x, 0)], which maps to u8. Outputs: y, scale, zero point.
Operands dynamic_quantize_linear(const Context& c) {
  const Value x = c.input(0), zero = scalar_like(x, 0);
  const Value low = minimum(min(x), zero), high = maximum(max(x), zero);
  const Value scale = (high - low) / 255.0;
  const Value point = cast(clip(round(-low / scale), {.min = 0, .max = 255}), u8);
  return {quantize(x, scale, point, {.to = Type{u8, {}, {}}}), scale, point};
}

}  // namespace

void add_quantization(Mappings& all) {
  all["QuantizeLinear"] = quantize_linear;
  all["DequantizeLinear"] = dequantize_linear;
  all["DynamicQuantizeLinear"] = dynamic_quantize_linear;
}

}  // namespace fluid::onnx
