#include "ops/elementwise.h"

namespace fluid {

OpDef logical_or_op() {
  return OpDef{
      .name = "logical_or",
      .doc = "Whether a or b holds.",
      .inputs = {{"a", "bool tensor"}, {"b", "same dtype, broadcasts with a"}},
      .attrs = {},
      .outputs = {{"y", "the broadcast shape"}},
      .infer = infer_logical,
      .grad = NoGrad{},
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = cost_per_element(1),
      .in_place = {{0, 0}, {0, 1}},
      .lower = map_binary([](const Expr& a, const Expr& b) { return scalar::logical_or(a, b); }),
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
