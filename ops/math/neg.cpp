#include "ops/elementwise.h"
#include "ops/operators.h"

namespace fluid {

OpDef neg_op() {
  return OpDef{
      .name = "neg",
      .doc = "-x.",
      .inputs = {{"x", "numeric tensor"}},
      .attrs = {},
      .outputs = {{"y", "like x"}},
      .infer = infer_numeric_unary,
      .grad = GradFn([](const GradCtx& c) { return Values{-c.dout(0)}; }),
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = cost_per_element(1),
      .in_place = {{0, 0}},
      .lower = map_unary(ScalarOp::neg),
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
