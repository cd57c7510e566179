#include "ops/elementwise.h"
#include "ops/operators.h"

namespace fluid {

OpDef sqrt_op() {
  return OpDef{
      .name = "sqrt",
      .doc = "Square root of x; NaN below 0.",
      .inputs = {{"x", "float tensor"}},
      .attrs = {},
      .outputs = {{"y", "like x"}},
      .infer = infer_float_unary,
      .grad = GradFn([](const GradCtx& c) { return Values{c.dout(0) * 0.5 / c.out(0)}; }),
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = cost_per_element(1),
      .in_place = {{0, 0}},
      .lower = map_unary(ScalarOp::sqrt),
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
