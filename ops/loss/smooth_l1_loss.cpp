#include "ops/elementwise.h"
#include "ops/loss/elementwise_loss.h"
#include "ops/operators.h"

namespace fluid {
namespace {

Value smooth_l1(Value x, Value target, const Attrs& attrs) {
  const double beta = attrs.get<double>("beta");
  const Value error = abs(x - target);
  if (beta == 0) return error;
  return where(less(error, scalar_like(error, beta)), square(error) * (0.5 / beta),
               error - 0.5 * beta);
}

Values smooth_l1_derivatives(Value x, Value target, const Attrs& attrs) {
  const double beta = attrs.get<double>("beta");
  const Value difference = x - target;
  Value dx = sign_of(difference);
  if (beta != 0) {
    const Value one = scalar_like(difference, 1), minus_one = scalar_like(difference, -1);
    dx = minimum(maximum(difference / beta, minus_one), one);
  }
  return {dx, -dx};
}

}  // namespace

OpDef smooth_l1_loss_op() {
  return elementwise_loss_def({
      .name = "smooth_l1_loss",
      .doc =
          "Smooth L1 loss (Girshick, 2015): (x - target)^2 / (2 beta) where |x - target| < beta, "
          "and |x - target| - beta / 2 elsewhere.",
      .attrs = {{"beta", 1.0, "error at which the loss becomes linear; 0: l1_loss"}},
      .check = [](const InferCtx& c) { require_not_negative(c, "beta"); },
      .loss = smooth_l1,
      .derivatives = smooth_l1_derivatives,
      .flops = 6,
  });
}

}  // namespace fluid
