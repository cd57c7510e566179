#include "ops/elementwise.h"
#include "ops/operators.h"

namespace fluid {

OpDef sinh_op() {
  return OpDef{
      .name = "sinh",
      .doc = "The hyperbolic sine.",
      .inputs = {{"x", "float tensor"}},
      .attrs = {},
      .outputs = {{"y", "like x"}},
      .infer = infer_float_unary,
      .grad = GradFn([](const GradCtx& c) { return Values{c.dout(0) * cosh(c.in(0))}; }),
      .effects = Pure{},
      .amp = Amp::kF32,
      .cost = cost_per_element(10),
      .in_place = {{0, 0}},
      .lower = map_unary(ScalarOp::sinh),
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
