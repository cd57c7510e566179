#include "ops/elementwise.h"

namespace fluid {

OpDef is_nan_op() {
  return OpDef{
      .name = "is_nan",
      .doc = "Whether x is NaN.",
      .inputs = {{"x", "float tensor"}},
      .attrs = {},
      .outputs = {{"y", "bool, same shape as x"}},
      .infer = infer_float_predicate,
      .grad = NoGrad{},
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = cost_per_element(1),
      .in_place = {},
      .lower = map_unary([](const Expr& x) { return scalar::compare(ScalarOp::ne, x, x); }),
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
