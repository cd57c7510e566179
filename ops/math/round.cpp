#include "ops/math/rounding.h"

namespace fluid {

Expr round_half_to_even(const Expr& x) {
  const DType dtype = x.dtype();
  const Expr below = scalar::unary(ScalarOp::floor, x);
  // If x is infinite, `fraction` is NaN. Both comparisons are then false, and the result is x.
  const Expr fraction = x - below;
  const Expr half = Expr::constant(dtype, 0.5);
  const Expr is_odd =
      scalar::compare(ScalarOp::ne, scalar::unary(ScalarOp::floor, below * half), below * half);
  const Expr tie = scalar::compare(ScalarOp::eq, fraction, half);
  const Expr up = scalar::logical_or(scalar::compare(ScalarOp::gt, fraction, half),
                                     scalar::logical_and(tie, is_odd));
  return scalar::select(up, below + 1.0, below);
}

OpDef round_op() {
  return rounding_def("round", "x rounded to the nearest integer, and halves to the even one.", 6,
                      round_half_to_even);
}

}  // namespace fluid
