#include "ops/elementwise.h"
#include "ops/operators.h"
#include "ops/reduction.h"

namespace fluid {

OpDef sum_op() {
  return OpDef{
      .name = "sum",
      .doc =
          "Sum along `axes`; 0 over zero elements. Floats accumulate in f32 or wider. Bools are "
          "counted.",
      .inputs = {{"x", "any tensor"}},
      .attrs = reduction_attrs(),
      .outputs = {{"y", "x's dtype; i64 if x is bool"}},
      .infer = [](const InferCtx& c) { return infer_arithmetic_reduction("sum", c); },
      .grad = GradFn([](const GradCtx& c) {
        const Shape& shape = c.in(0).shape();
        return Values{broadcast_to(unsqueeze_axes(c.dout(0), shape, c.attrs()), shape)};
      }),
      .effects = Pure{},
      .amp = Amp::kF32,
      .cost = [](const CostCtx& c) { return Cost{.flops = c.numel_in(0)}; },
      .in_place = {},
      .lower = arithmetic_reduction(Combine::sum),
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
