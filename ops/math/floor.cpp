#include "ops/math/rounding.h"

namespace fluid {

OpDef floor_op() {
  return rounding_def("floor", "The largest integer that is not above x.", 2,
                      [](const Expr& x) { return scalar::unary(ScalarOp::floor, x); });
}

}  // namespace fluid
