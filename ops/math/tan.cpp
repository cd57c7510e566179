#include "ops/elementwise.h"
#include "ops/operators.h"

namespace fluid {

OpDef tan_op() {
  return OpDef{
      .name = "tan",
      .doc = "The tangent of x in radians; NaN for infinities.",
      .inputs = {{"x", "float tensor"}},
      .attrs = {},
      .outputs = {{"y", "like x"}},
      .infer = infer_float_unary,
      .grad = GradFn([](const GradCtx& c) { return Values{c.dout(0) * (square(c.out(0)) + 1.0)}; }),
      .effects = Pure{},
      .amp = Amp::kF32,
      .cost = cost_per_element(10),
      .in_place = {{0, 0}},
      .lower = map_unary(ScalarOp::tan),
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
