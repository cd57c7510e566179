#include "ops/elementwise.h"
#include "ops/operators.h"

namespace fluid {

OpDef hard_swish_op() {
  return OpDef{
      .name = "hard_swish",
      .doc = "x * relu6(x + 3) / 6 (Howard et al., \"Searching for MobileNetV3\", 2019).",
      .inputs = {{"x", "float tensor"}},
      .attrs = {},
      .outputs = {{"y", "like x"}},
      .infer = infer_float_unary,
      .grad = GradFn([](const GradCtx& c) {
        const Value x = c.in(0), dy = c.dout(0);
        const Value middle = where(less(x, scalar_like(x, 3)), dy * (x / 3.0 + 0.5), dy);
        return Values{where(less_equal(x, scalar_like(x, -3)), scalar_like(dy, 0), middle)};
      }),
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = cost_per_element(5),
      .in_place = {{0, 0}},
      .lower = map_unary([](const Expr& x) {
        const Expr positive = scalar::max(x + 3.0, Expr::constant(x.dtype(), 0));
        return x * scalar::min(positive, Expr::constant(x.dtype(), 6)) / 6.0;
      }),
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
