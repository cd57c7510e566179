#include "ops/elementwise.h"
#include "ops/operators.h"

namespace fluid {

OpDef softsign_op() {
  return OpDef{
      .name = "softsign",
      .doc = "x / (1 + |x|).",
      .inputs = {{"x", "float tensor"}},
      .attrs = {},
      .outputs = {{"y", "like x"}},
      .infer = infer_float_unary,
      .grad = GradFn([](const GradCtx& c) {
        // The square of 1 + |x| would overflow in f16.
        const Value scale = 1.0 / (1.0 + abs(c.in(0)));
        return Values{c.dout(0) * scale * scale};
      }),
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = cost_per_element(3),
      .in_place = {{0, 0}},
      .lower = map_unary([](const Expr& x) { return x / (1.0 + scalar::unary(ScalarOp::abs, x)); }),
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
