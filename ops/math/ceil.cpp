#include "ops/math/rounding.h"

namespace fluid {

OpDef ceil_op() {
  return rounding_def("ceil", "The smallest integer that is not below x.", 2,
                      [](const Expr& x) { return -scalar::unary(ScalarOp::floor, -x); });
}

}  // namespace fluid
