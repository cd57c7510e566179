#include <numbers>

#include "ops/elementwise.h"
#include "ops/operators.h"

namespace fluid {

OpDef exp2_op() {
  return OpDef{
      .name = "exp2",
      .doc = "2 to the power of x, exact for integers.",
      .inputs = {{"x", "float tensor"}},
      .attrs = {},
      .outputs = {{"y", "like x"}},
      .infer = infer_float_unary,
      .grad =
          GradFn([](const GradCtx& c) { return Values{c.dout(0) * c.out(0) * std::numbers::ln2}; }),
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = cost_per_element(10),
      .in_place = {{0, 0}},
      .lower = map_unary(ScalarOp::exp2),
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
