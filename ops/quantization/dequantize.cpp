#include "ops/elementwise.h"
#include "ops/quantization/quantization.h"

namespace fluid {

OpDef dequantize_op() {
  return OpDef{
      .name = "dequantize",
      .doc =
          "Converts integers to floats: (x - zero_point) * scale, like ONNX's DequantizeLinear. "
          "For inference only.",
      .inputs = {{"x", "tensor of i8, u8 or i32"},
                 {"scale", "float; one element, or one per index of `axis`"},
                 {.name = "zero_point",
                  .doc = "same dtype as x; one element, or one per index of `axis`; absent: 0",
                  .optional = true}},
      .attrs = {{"axis", int64_t{1}, "axis of scale and zero_point; negative counts from the end"}},
      .outputs = {{"y", "x's shape, scale's dtype"}},
      .infer =
          [](const InferCtx& c) {
            const DType from = c.in(0).dtype;
            c.require(is_8bit_integer(from) || from == DType::i32,
                      "expects a tensor of i8, u8 or i32, got " + c.in(0).str());
            c.require(is_float(c.in(1).dtype),
                      "the scale must be a float tensor, not " + c.in(1).str());
            require_quantization(c, from);
            return std::vector<Type>{{c.in(1).dtype, c.in(0).shape}};
          },
      .grad = NoGrad{},
      .effects = Pure{},
      .amp = Amp::kF32,
      .cost = cost_per_element(2),
      .in_place = {{0, 1}},
      .lower = Map{[](const LowerCtx& c) {
        const Expr scale = read_quantization(c, 1);
        Expr x = scalar::cast(c.in(0), scale.dtype());
        if (c.arity() > 2) x = x - scalar::cast(read_quantization(c, 2), scale.dtype());
        return std::vector{x * scale};
      }},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
