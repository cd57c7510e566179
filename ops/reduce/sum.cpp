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
      .infer =
          [](const InferCtx& c) {
            std::vector<Type> in = c.ins();
            if (in[0].dtype == boolean) in[0].dtype = i64;
            return infer_reduction(InferCtx("sum", in, c.attrs(), c.loc()));
          },
      .grad = GradFn([](const GradCtx& c) {
        const Shape& shape = c.in(0).shape();
        return Values{broadcast_to(unsqueeze_axes(c.dout(0), shape, c.attrs()), shape)};
      }),
      .effects = Pure{},
      .amp = Amp::kF32,
      .cost = [](const CostCtx& c) { return Cost{.flops = c.numel_in(0)}; },
      .in_place = {},
      .lower = reduce_along(
          Combine::sum,
          [](const Expr& x) { return x.dtype() == boolean ? scalar::cast(x, i64) : x; }),
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
