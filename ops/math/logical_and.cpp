#include "ops/elementwise.h"

namespace fluid {

OpDef logical_and_op() {
  return OpDef{
      .name = "logical_and",
      .doc = "Whether a and b both hold.",
      .inputs = {{"a", "bool tensor"}, {"b", "same dtype, broadcasts with a"}},
      .attrs = {},
      .outputs = {{"y", "the broadcast shape"}},
      .infer = infer_logical,
      .grad = NoGrad{},
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = cost_per_element(1),
      .in_place = {{0, 0}, {0, 1}},
      .lower = map_binary([](const Expr& a, const Expr& b) { return scalar::logical_and(a, b); }),
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
