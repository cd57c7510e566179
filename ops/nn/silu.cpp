#include "ops/elementwise.h"
#include "ops/operators.h"

namespace fluid {

OpDef silu_op() {
  return OpDef{
      .name = "silu",
      .doc = "x * sigmoid(x), also called swish.",
      .inputs = {{"x", "float tensor"}},
      .attrs = {},
      .outputs = {{"y", "like x"}},
      .infer = infer_float_unary,
      .grad = GradFn([](const GradCtx& c) {
        const Value x = c.in(0), gate = sigmoid(x);
        return Values{c.dout(0) * (gate * (1.0 + x * (1.0 - gate)))};
      }),
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = cost_per_element(11),
      .in_place = {{0, 0}},
      .lower = map_unary([](const Expr& x) { return x * scalar::unary(ScalarOp::sigmoid, x); }),
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
