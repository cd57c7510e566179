#include "ops/elementwise.h"
#include "ops/operators.h"

namespace fluid {

OpDef relu6_op() {
  return OpDef{
      .name = "relu6",
      .doc = "min(max(x, 0), 6).",
      .inputs = {{"x", "float tensor"}},
      .attrs = {},
      .outputs = {{"y", "like x"}},
      .infer = infer_float_unary,
      .grad = GradFn([](const GradCtx& c) {
        // Tests the result, as in relu, so that the backward pass does not need the operand. A NaN
        // result passes the gradient through, as in PyTorch.
        const Value y = c.out(0), zero = scalar_like(y, 0);
        const Value flat = logical_or(less_equal(y, zero), greater_equal(y, scalar_like(y, 6)));
        return Values{where(flat, zero, c.dout(0))};
      }),
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = cost_per_element(2),
      .in_place = {{0, 0}},
      .lower = map_unary([](const Expr& x) {
        const Expr positive = scalar::max(x, Expr::constant(x.dtype(), 0));
        return scalar::min(positive, Expr::constant(x.dtype(), 6));
      }),
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
