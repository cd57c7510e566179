#include <numbers>

#include "ops/elementwise.h"
#include "ops/operators.h"

namespace fluid {

OpDef log2_op() {
  return OpDef{
      .name = "log2",
      .doc = "The logarithm of x to base 2, exact for powers of 2.",
      .inputs = {{"x", "float tensor"}},
      .attrs = {},
      .outputs = {{"y", "like x"}},
      .infer = infer_float_unary,
      .grad = GradFn(
          [](const GradCtx& c) { return Values{c.dout(0) / (c.in(0) * std::numbers::ln2)}; }),
      .effects = Pure{},
      .amp = Amp::kF32,
      .cost = cost_per_element(10),
      .in_place = {{0, 0}},
      .lower = map_unary(ScalarOp::log2),
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
