#include "ops/elementwise.h"
#include "ops/quantization/quantization.h"

namespace fluid {

OpDef quantize_op() {
  return OpDef{
      .name = "quantize",
      .doc =
          "Converts floats to 8-bit integers: round(x / scale) + zero_point, which saturates at "
          "the limits of the dtype, like ONNX's QuantizeLinear. Halves round to the even integer. "
          "NaN becomes 0, but any integer in the result of a convolution or product of 8-bit "
          "integers. For inference only.",
      .inputs = {{"x", "float tensor"},
                 {"scale", "x's dtype, positive; one element, or one per index of `axis`"},
                 {.name = "zero_point",
                  .doc = "of dtype `to`; the integer for 0; one element, or one per index of "
                         "`axis`; absent: 0",
                  .optional = true}},
      .attrs = {{"to", Type{}, "gives the dtype of the result, i8 or u8; its shape is ignored",
                 true},
                {"axis", int64_t{1}, "axis of scale and zero_point; negative counts from the end"}},
      .outputs = {{"y", "x's shape"}},
      .infer =
          [](const InferCtx& c) {
            c.require(is_float(c.in(0).dtype), "expects a float tensor, got " + c.in(0).str());
            const DType to = require_8bit_result(c);
            c.require(c.in(1).dtype == c.in(0).dtype,
                      "the scale " + c.in(1).str() + " must have the dtype of " + c.in(0).str());
            require_quantization(c, to);
            return std::vector<Type>{{to, c.in(0).shape}};
          },
      .grad = NoGrad{},
      .effects = Pure{},
      .amp = Amp::kF32,
      .cost = cost_per_element(12),
      .in_place = {},
      .lower = Map{[](const LowerCtx& c) {
        const Expr zero_point = c.arity() > 2 ? read_quantization(c, 2) : Expr();
        return std::vector{round_and_saturate(c.in(0) / read_quantization(c, 1), zero_point,
                                              c.attr<Type>("to").dtype)};
      }},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
