#include "ops/math/rounding.h"

namespace fluid {

OpDef trunc_op() {
  return rounding_def("trunc", "x rounded towards 0.", 2, [](const Expr& x) {
    const Expr size = scalar::unary(ScalarOp::floor, scalar::unary(ScalarOp::abs, x));
    const Expr negative = scalar::compare(ScalarOp::lt, x, Expr::constant(x.dtype(), 0));
    return scalar::select(negative, -size, size);
  });
}

}  // namespace fluid
