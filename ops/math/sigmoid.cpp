#include "ops/elementwise.h"
#include "ops/operators.h"

namespace fluid {

OpDef sigmoid_op() {
  return OpDef{
      .name = "sigmoid",
      .doc = "1 / (1 + exp(-x)).",
      .inputs = {{"x", "float tensor"}},
      .attrs = {},
      .outputs = {{"y", "like x"}},
      .infer = infer_float_unary,
      .grad = GradFn([](const GradCtx& c) {
        const Value y = c.out(0);
        return Values{c.dout(0) * (y * (1.0 - y))};
      }),
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = cost_per_element(10),
      .in_place = {{0, 0}},
      .lower = map_unary(ScalarOp::sigmoid),
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
