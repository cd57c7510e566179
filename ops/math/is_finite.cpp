#include "ops/elementwise.h"

namespace fluid {

OpDef is_finite_op() {
  return OpDef{
      .name = "is_finite",
      .doc = "Whether x is neither infinite nor NaN.",
      .inputs = {{"x", "float tensor"}},
      .attrs = {},
      .outputs = {{"y", "bool, same shape as x"}},
      .infer = infer_float_predicate,
      .grad = NoGrad{},
      .effects = Pure{},
      .amp = Amp::kFollow,
      .cost = cost_per_element(1),
      .in_place = {},
      .lower = map_unary(ScalarOp::isfinite),
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
