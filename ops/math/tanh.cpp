#include "ops/elementwise.h"
#include "ops/operators.h"

namespace fluid {

OpDef tanh_op() {
  return OpDef{
      .name = "tanh",
      .doc = "The hyperbolic tangent.",
      .inputs = {{"x", "float tensor"}},
      .attrs = {},
      .outputs = {{"y", "like x"}},
      .infer = infer_float_unary,
      .grad = GradFn([](const GradCtx& c) { return Values{c.dout(0) * (1.0 - square(c.out(0)))}; }),
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = cost_per_element(10),
      .in_place = {{0, 0}},
      .lower = map_unary(ScalarOp::tanh),
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
