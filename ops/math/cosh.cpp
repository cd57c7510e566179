#include "ops/elementwise.h"
#include "ops/operators.h"

namespace fluid {

OpDef cosh_op() {
  return OpDef{
      .name = "cosh",
      .doc = "The hyperbolic cosine.",
      .inputs = {{"x", "float tensor"}},
      .attrs = {},
      .outputs = {{"y", "like x"}},
      .infer = infer_float_unary,
      .grad = GradFn([](const GradCtx& c) { return Values{c.dout(0) * sinh(c.in(0))}; }),
      .effects = Pure{},
      .amp = Amp::kF32,
      .cost = cost_per_element(10),
      .in_place = {{0, 0}},
      .lower = map_unary(ScalarOp::cosh),
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
