#include "ops/elementwise.h"
#include "ops/operators.h"

namespace fluid {

OpDef rsqrt_op() {
  return OpDef{
      .name = "rsqrt",
      .doc = "1 / sqrt(x).",
      .inputs = {{"x", "float tensor"}},
      .attrs = {},
      .outputs = {{"y", "like x"}},
      .infer = infer_float_unary,
      .grad =
          GradFn([](const GradCtx& c) { return Values{c.dout(0) * -0.5 * c.out(0) / c.in(0)}; }),
      .effects = Pure{},
      .amp = Amp::kF32,
      .cost = cost_per_element(1),
      .in_place = {{0, 0}},
      .lower = map_unary(ScalarOp::rsqrt),
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
