#include "ops/nn/conv.h"
#include "ops/quantization/quantization.h"

namespace fluid {

OpDef conv2d_int8_op() {
  return OpDef{
      .name = "conv2d_int8",
      .doc = "conv2d of 8-bit integers. The sums are f32: exact up to 2^24, beyond that rounded.",
      .inputs = {{"x", "i8 or u8 [N, C, H, W]"}, {"w", "filter, i8 [O, C / groups, KH, KW]"}},
      .attrs = conv_attrs(2),
      .outputs = {{"y", "f32 [N, O, OH, OW], as of conv2d"}},
      .infer =
          [](const InferCtx& c) {
            c.require(is_8bit_integer(c.in(0).dtype) && c.in(1).dtype == DType::i8,
                      "expects an input of i8 or u8 and a filter of i8, got " + c.in(0).str() +
                          " and " + c.in(1).str());
            Type x = c.in(0), w = c.in(1);
            x.dtype = w.dtype = DType::f32;
            return std::vector{conv_type(c, x, w, 2)};
          },
      .grad = NoGrad{},
      .effects = Pure{},
      .amp = Amp::kF32,
      .cost = [](const CostCtx& c) { return conv_cost(c.in[1], c.out[0]); },
      .in_place = {},
      .lower = Reduce{Combine::sum, conv_body},
      .kernels = {{KernelDevice::cpu, "onednn.conv2d_int8"}},
      .version = 1,
      .internal = true,
  };
}

}  // namespace fluid
