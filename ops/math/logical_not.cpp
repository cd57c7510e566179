#include "ops/elementwise.h"

namespace fluid {

OpDef logical_not_op() {
  return OpDef{
      .name = "logical_not",
      .doc = "Elementwise logical not.",
      .inputs = {{"x", "bool tensor"}},
      .attrs = {},
      .outputs = {{"y", "like x"}},
      .infer = infer_logical,
      .grad = NoGrad{},
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = cost_per_element(1),
      .in_place = {{0, 0}},
      .lower = map_unary([](const Expr& x) { return scalar::logical_not(x); }),
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
