#include "ops/elementwise.h"
#include "ops/operators.h"

namespace fluid {

OpDef square_op() {
  return OpDef{
      .name = "square",
      .doc = "x * x.",
      .inputs = {{"x", "numeric tensor"}},
      .attrs = {},
      .outputs = {{"y", "like x"}},
      .infer = infer_numeric_unary,
      .grad = GradFn([](const GradCtx& c) { return Values{c.dout(0) * c.in(0) * 2.0}; }),
      .effects = Pure{},
      .amp = Amp::kF32,
      .cost = cost_per_element(1),
      .in_place = {{0, 0}},
      .lower = map_unary([](const Expr& x) { return x * x; }),
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
