#include "ops/elementwise.h"
#include "ops/operators.h"

namespace fluid {

OpDef cos_op() {
  return OpDef{
      .name = "cos",
      .doc = "The cosine of x in radians; NaN for infinities.",
      .inputs = {{"x", "float tensor"}},
      .attrs = {},
      .outputs = {{"y", "like x"}},
      .infer = infer_float_unary,
      .grad = GradFn([](const GradCtx& c) { return Values{-(c.dout(0) * sin(c.in(0)))}; }),
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = cost_per_element(10),
      .in_place = {{0, 0}},
      .lower = map_unary(ScalarOp::cos),
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
