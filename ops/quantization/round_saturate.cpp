#include "ops/elementwise.h"
#include "ops/quantization/quantization.h"

namespace fluid {

OpDef round_saturate_op() {
  return OpDef{
      .name = "round_saturate",
      .doc =
          "quantize with scale 1: rounds x half to even and converts it to an 8-bit integer, which "
          "saturates.",
      .inputs = {{"x", "float tensor"}},
      .attrs = {{"to", Type{}, "gives the dtype of the result, i8 or u8; its shape is ignored",
                 true}},
      .outputs = {{"y", "x's shape"}},
      .infer =
          [](const InferCtx& c) {
            require_float(c, 0);
            const DType to = require_8bit_result(c);
            return std::vector<Type>{{to, c.in(0).shape}};
          },
      .grad = NoGrad{},
      .effects = Pure{},
      .amp = Amp::kF32,
      .cost = cost_per_element(10),
      .in_place = {},
      .lower = Map{[](const LowerCtx& c) {
        return std::vector{round_and_saturate(c.in(0), Expr(), c.attr<Type>("to").dtype)};
      }},
      .kernels = {},
      .version = 1,
      .internal = true,
  };
}

}  // namespace fluid
