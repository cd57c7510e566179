#include "ops/elementwise.h"
#include "ops/operators.h"

namespace fluid {

OpDef reciprocal_op() {
  return OpDef{
      .name = "reciprocal",
      .doc = "1 / x.",
      .inputs = {{"x", "float tensor"}},
      .attrs = {},
      .outputs = {{"y", "like x"}},
      .infer = infer_float_unary,
      .grad = GradFn([](const GradCtx& c) {
        const Value y = c.out(0);
        return Values{-(c.dout(0) * y * y)};
      }),
      .effects = Pure{},
      .amp = Amp::kF32,
      .cost = cost_per_element(1),
      .in_place = {{0, 0}},
      .lower = map_unary([](const Expr& x) { return 1.0 / x; }),
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
