#include "ops/elementwise.h"
#include "ops/operators.h"

namespace fluid {

OpDef abs_op() {
  return OpDef{
      .name = "abs",
      .doc = "|x|. Its gradient at 0 is 0.",
      .inputs = {{"x", "numeric tensor"}},
      .attrs = {},
      .outputs = {{"y", "like x"}},
      .infer = infer_numeric_unary,
      .grad = GradFn([](const GradCtx& c) {
        Value x = c.in(0), dy = c.dout(0), zero = scalar_like(dy, 0);
        return Values{where(greater(x, zero), dy, where(less(x, zero), -dy, zero))};
      }),
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = cost_per_element(1),
      .in_place = {{0, 0}},
      .lower = map_unary(ScalarOp::abs),
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
