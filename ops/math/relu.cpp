#include "ops/elementwise.h"
#include "ops/operators.h"

namespace fluid {

OpDef relu_op() {
  return OpDef{
      .name = "relu",
      .doc = "max(x, 0).",
      .inputs = {{"x", "float tensor"}},
      .attrs = {},
      .outputs = {{"y", "like x"}},
      .infer = infer_float_unary,
      .grad = GradFn([](const GradCtx& c) {
        // Tests the result instead of the operand, so that the backward pass does not need the
        // operand and a library kernel may fuse the relu. A NaN result passes the gradient through,
        // as in PyTorch.
        const Value zero = scalar_like(c.out(0), 0);
        return Values{where(less_equal(c.out(0), zero), zero, c.dout(0))};
      }),
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = cost_per_element(1),
      .in_place = {{0, 0}},
      .lower =
          map_unary([](const Expr& x) { return scalar::max(x, Expr::constant(x.dtype(), 0)); }),
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
