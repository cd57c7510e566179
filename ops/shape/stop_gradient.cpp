#include "ops/elementwise.h"

namespace fluid {

OpDef stop_gradient_op() {
  return OpDef{
      .name = "stop_gradient",
      .doc = "x, without a gradient, like torch.Tensor.detach.",
      .inputs = {{"x", "any tensor"}},
      .attrs = {},
      .outputs = {{"y", "like x"}},
      .infer = [](const InferCtx& c) { return std::vector{c.in(0)}; },
      .grad = GradFn([](const GradCtx&) { return Values{Value()}; }),
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = cost_per_element(0),
      .in_place = {},
      .lower = Expand{[](const ExpandCtx& c) { return Values{c.in(0)}; }},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
