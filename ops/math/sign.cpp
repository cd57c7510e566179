#include "ops/elementwise.h"

namespace fluid {

OpDef sign_op() {
  return OpDef{
      .name = "sign",
      .doc = "1 where x is positive, -1 where it is negative, else 0. Its gradient is 0.",
      .inputs = {{"x", "numeric tensor"}},
      .attrs = {},
      .outputs = {{"y", "like x"}},
      .infer = infer_numeric_unary,
      .grad = GradFn([](const GradCtx&) { return Values{Value()}; }),
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = cost_per_element(2),
      .in_place = {{0, 0}},
      .lower = map_unary([](const Expr& x) {
        const auto number = [&](double value) { return Expr::constant(x.dtype(), value); };
        const Expr zero = number(0);
        const Expr below = scalar::select(scalar::compare(ScalarOp::lt, x, zero), number(-1), zero);
        return scalar::select(scalar::compare(ScalarOp::gt, x, zero), number(1), below);
      }),
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
