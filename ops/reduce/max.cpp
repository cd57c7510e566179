#include "ops/elementwise.h"
#include "ops/reduction.h"

namespace fluid {

OpDef max_op() {
  return OpDef{
      .name = "max",
      .doc = "The largest element along `axes`; nan when one is nan. Ties share the gradient.",
      .inputs = {{"x", "number tensor, with elements along the axes"}},
      .attrs = reduction_attrs(),
      .outputs = {{"y", "x's dtype"}},
      .infer = infer_extremum,
      .grad = GradFn(extremum_grad),
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = [](const CostCtx& c) { return Cost{.flops = c.numel_in(0)}; },
      .in_place = {},
      .lower = reduce_along(Combine::max, [](const Expr& x) { return x; }),
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
