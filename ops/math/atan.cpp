#include "ops/elementwise.h"
#include "ops/operators.h"

namespace fluid {

OpDef atan_op() {
  return OpDef{
      .name = "atan",
      .doc = "The arctangent of x in radians.",
      .inputs = {{"x", "float tensor"}},
      .attrs = {},
      .outputs = {{"y", "like x"}},
      .infer = infer_float_unary,
      .grad = GradFn([](const GradCtx& c) { return Values{c.dout(0) / (square(c.in(0)) + 1.0)}; }),
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = cost_per_element(10),
      .in_place = {{0, 0}},
      .lower = map_unary(ScalarOp::atan),
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
