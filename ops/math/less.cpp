#include "ops/elementwise.h"

namespace fluid {

OpDef less_op() {
  return OpDef{
      .name = "less",
      .doc = "Whether a < b.",
      .inputs = {{"a", "any tensor"}, {"b", "same dtype, broadcasts with a"}},
      .attrs = {},
      .outputs = {{"y", "bool, the broadcast shape"}},
      .infer = infer_comparison,
      .grad = NoGrad{},
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = cost_per_element(1),
      .in_place = {{0, 0}, {0, 1}},
      .lower = map_binary(
          [](const Expr& a, const Expr& b) { return scalar::compare(Scalar::lt, a, b); }),
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
