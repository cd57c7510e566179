#include "ops/operators.h"

namespace fluid {

OpDef mse_loss_op() {
  return OpDef{
      .name = "mse_loss",
      .doc = "Squared error (x - target)^2, elementwise without reduction.",
      .inputs = {{"x", "float tensor"}, {"target", "same type as x"}},
      .attrs = {},
      .outputs = {{"loss", "same type as x"}},
      .infer =
          [](const InferCtx& c) {
            c.require(is_float(c.in(0).dtype) && c.in(0) == c.in(1),
                      "expects two float tensors of equal type, got " + c.in(0).str() + " and " +
                          c.in(1).str());
            return std::vector{c.in(0)};
          },
      .grad = GradFn([](const GradCtx& c) {
        const Value dx = 2.0 * (c.in(0) - c.in(1)) * c.dout(0);
        return Values{dx, -dx};
      }),
      .effects = Pure{},
      .amp = {Amp::kF32},
      .cost = [](const CostCtx& c) { return Cost{.flops = 2 * c.numel_out()}; },
      .in_place = {{.out = 0, .in = 0}, {.out = 0, .in = 1}},
      .lower = Map{[](const LowerCtx& c) {
        const Expr difference = c.in(0) - c.in(1);
        return std::vector{difference * difference};
      }},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
