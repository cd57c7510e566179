#include <numbers>

#include "ops/elementwise.h"
#include "ops/operators.h"

namespace fluid {

OpDef erf_op() {
  return OpDef{
      .name = "erf",
      .doc = "The error function.",
      .inputs = {{"x", "float tensor"}},
      .attrs = {},
      .outputs = {{"y", "like x"}},
      .infer = infer_float_unary,
      .grad = GradFn([](const GradCtx& c) {
        // erf'(x) = 2 / sqrt(pi) * exp(-x^2)
        constexpr double kSlope = 2 * std::numbers::inv_sqrtpi;
        return Values{c.dout(0) * kSlope * exp(-square(c.in(0)))};
      }),
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = cost_per_element(10),
      .in_place = {{0, 0}},
      .lower = map_unary(ScalarOp::erf),
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
