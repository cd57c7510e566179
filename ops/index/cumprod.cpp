#include "ops/elementwise.h"
#include "ops/index/cumulative.h"
#include "ops/internal_functions.h"

namespace fluid {

OpDef cumprod_op() {
  return OpDef{
      .name = "cumprod",
      .doc =
          "Cumulative product along `axis`, like torch.cumprod, and CumProd of ONNX. Half "
          "precision is multiplied in f32. The gradient is exact where elements are 0.",
      .inputs = {{"x", "numeric tensor, rank >= 1"}},
      .attrs = cumulative_attrs("product"),
      .outputs = {{"y", "same type as x"}},
      .infer = infer_cumulative,
      .grad = GradFn([](const GradCtx& c) {
        return Values{internal::cumprod_grad(c.dout(0), c.in(0),
                                             {.axis = c.attr<int64_t>("axis"),
                                              .exclusive = c.attr<bool>("exclusive"),
                                              .reverse = c.attr<bool>("reverse")})};
      }),
      .effects = Pure{},
      .amp = {Amp::kF32},
      .cost = cost_per_element(1),
      .in_place = {{0, 0}},
      .lower = cumulative_lowering(Combine::prod),
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
