#include "ops/elementwise.h"
#include "ops/operators.h"

namespace fluid {

OpDef leaky_relu_op() {
  return OpDef{
      .name = "leaky_relu",
      .doc =
          "x where x is positive, else `negative_slope` * x (Maas et al., \"Rectifier "
          "nonlinearities improve neural network acoustic models\", 2013).",
      .inputs = {{"x", "float tensor"}},
      .attrs = {{"negative_slope", 0.01, "factor of negative elements"}},
      .outputs = {{"y", "like x"}},
      .infer =
          [](const InferCtx& c) {
            require_finite(c, "negative_slope");
            return infer_float_unary(c);
          },
      .grad = GradFn([](const GradCtx& c) {
        const double slope = c.attr<double>("negative_slope");
        // With slope >= 0 the result has the sign of the operand, so the backward pass does not
        // need the operand.
        const Value signs = slope >= 0 ? c.out(0) : c.in(0);
        const Value dy = c.dout(0);
        return Values{where(greater(signs, scalar_like(signs, 0)), dy, dy * slope)};
      }),
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = cost_per_element(1),
      .in_place = {{0, 0}},
      .lower = Map{[](const LowerCtx& c) {
        const Expr x = c.in(0);
        const Expr positive = scalar::compare(ScalarOp::gt, x, Expr::constant(x.dtype(), 0));
        return std::vector{scalar::select(positive, x, x * c.attr<double>("negative_slope"))};
      }},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
