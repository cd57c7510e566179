#include "ops/quantization/quantization.h"

#include "ops/math/rounding.h"
#include "ops/nn/axis.h"

namespace fluid {
namespace {

/// Throws UserError unless operand `i` has one element, or one per index along `axis`.
void require_elements(const InferCtx& c, size_t i, const std::string& name) {
  const Type &x = c.in(0), &elements = c.in(i);
  if (has_one_element(elements)) return;
  const int64_t rank = x.shape.rank(), axis = axis_of(c.attrs(), rank);
  c.require(axis >= 0 && axis < rank,
            "there is no axis " + std::to_string(c.attr<int64_t>("axis")) + " in " + x.str());
  const Dim& extent = x.shape[static_cast<size_t>(axis)];
  c.require(elements.shape.rank() == 1 && elements.shape[0] == extent && extent.is_constant(),
            "the " + name + " " + elements.str() +
                " has neither one element nor one per index of " + "axis " + std::to_string(axis) +
                " of " + x.str());
}

}  // namespace

bool has_one_element(const Type& type) {
  return type.shape.empty() || (type.shape.rank() == 1 && type.shape[0].is(1));
}

bool is_8bit_integer(DType dtype) { return dtype == DType::i8 || dtype == DType::u8; }

DType require_8bit_result(const InferCtx& c) {
  const DType to = c.attr<Type>("to").dtype;
  c.require(is_8bit_integer(to),
            "attribute 'to' must be i8 or u8, not " + std::string(name_of(to)));
  return to;
}

void require_quantization(const InferCtx& c, DType quantized) {
  require_elements(c, 1, "scale");
  if (!c.has(2)) return;
  c.require(c.in(2).dtype == quantized, "the zero point " + c.in(2).str() + " must be of dtype " +
                                            std::string(name_of(quantized)));
  require_elements(c, 2, "zero point");
}

Expr read_quantization(const LowerCtx& c, size_t i) {
  const Shape& shape = c.in_type(i).shape;
  if (shape.empty()) return c.read(i, {});
  if (shape[0].is(1)) return c.read(i, {Expr::index(0)});
  const auto axis = static_cast<size_t>(axis_of(c.attrs(), c.out_type().shape.rank()));
  return c.read(i, {c.out_var(axis)});
}

Expr round_and_saturate(const Expr& x, const Expr& zero_point, DType to) {
  const DType dtype = x.dtype();
  Expr low = Expr::constant(dtype, to == DType::u8 ? 0 : -128);
  Expr high = Expr::constant(dtype, to == DType::u8 ? 255 : 127);
  const Expr shift = zero_point ? scalar::cast(zero_point, dtype) : Expr();
  if (shift) {
    low = low - shift;
    high = high - shift;
  }
  // Clamping first gives the same result, because the bounds are integers.
  Expr rounded = round_half_to_even(scalar::min(scalar::max(x, low), high));
  if (shift) rounded = rounded + shift;
  return scalar::cast(rounded, to);
}

}  // namespace fluid
