#include "ops/elementwise.h"
#include "ops/operators.h"

namespace fluid {

OpDef asin_op() {
  return OpDef{
      .name = "asin",
      .doc =
          "The arcsine of x in radians; NaN outside [-1, 1]. Its gradient at -1 and 1 is infinite.",
      .inputs = {{"x", "float tensor"}},
      .attrs = {},
      .outputs = {{"y", "like x"}},
      .infer = infer_float_unary,
      .grad =
          GradFn([](const GradCtx& c) { return Values{c.dout(0) * rsqrt(1.0 - square(c.in(0)))}; }),
      .effects = Pure{},
      .amp = Amp::kF32,
      .cost = cost_per_element(10),
      .in_place = {{0, 0}},
      .lower = map_unary(ScalarOp::asin),
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
