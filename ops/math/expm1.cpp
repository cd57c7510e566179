#include "ops/elementwise.h"
#include "ops/operators.h"

namespace fluid {

OpDef expm1_op() {
  return OpDef{
      .name = "expm1",
      .doc = "exp(x) - 1, exact near 0.",
      .inputs = {{"x", "float tensor"}},
      .attrs = {},
      .outputs = {{"y", "like x"}},
      .infer = infer_float_unary,
      .grad = GradFn([](const GradCtx& c) { return Values{c.dout(0) * (c.out(0) + 1.0)}; }),
      .effects = Pure{},
      .amp = Amp::kF32,
      .cost = cost_per_element(10),
      .in_place = {{0, 0}},
      .lower = map_unary(ScalarOp::expm1),
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
