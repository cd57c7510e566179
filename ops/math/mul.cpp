#include "ops/elementwise.h"
#include "ops/operators.h"

namespace fluid {

OpDef mul_op() {
  return OpDef{
      .name = "mul",
      .doc = "a * b.",
      .inputs = {{"a", "numeric tensor"}, {"b", "same dtype as a; shape broadcasts with a's"}},
      .attrs = {},
      .outputs = {{"y", "the broadcast shape"}},
      .infer = infer_numeric_broadcast,
      .grad = GradFn([](const GradCtx& c) {
        Value dy = c.dout(0);
        return Values{sum_to(dy * c.in(1), c.in(0).shape()), sum_to(dy * c.in(0), c.in(1).shape())};
      }),
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = cost_per_element(1),
      .in_place = {{0, 0}, {0, 1}},
      .lower = map_binary([](const Expr& a, const Expr& b) { return a * b; }),
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
