#include "ops/elementwise.h"
#include "ops/operators.h"

namespace fluid {

OpDef log1p_op() {
  return OpDef{
      .name = "log1p",
      .doc = "log(1 + x), exact near 0.",
      .inputs = {{"x", "float tensor"}},
      .attrs = {},
      .outputs = {{"y", "like x"}},
      .infer = infer_float_unary,
      .grad = GradFn([](const GradCtx& c) { return Values{c.dout(0) / (c.in(0) + 1.0)}; }),
      .effects = Pure{},
      .amp = Amp::kF32,
      .cost = cost_per_element(10),
      .in_place = {{0, 0}},
      .lower = map_unary(ScalarOp::log1p),
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
