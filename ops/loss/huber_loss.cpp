#include "ops/loss/elementwise_loss.h"
#include "ops/operators.h"

namespace fluid {
namespace {

Value huber(Value x, Value target, const Attrs& attrs) {
  const double delta = attrs.get<double>("delta");
  const Value error = abs(x - target);
  return where(less(error, scalar_like(error, delta)), 0.5 * square(error),
               delta * (error - 0.5 * delta));
}

Values huber_derivatives(Value x, Value target, const Attrs& attrs) {
  const double delta = attrs.get<double>("delta");
  const Value difference = x - target;
  const Value dx =
      minimum(maximum(difference, scalar_like(difference, -delta)), scalar_like(difference, delta));
  return {dx, -dx};
}

}  // namespace

OpDef huber_loss_op() {
  return elementwise_loss_def({
      .name = "huber_loss",
      .doc = "Huber loss (1964): (x - target)^2 / 2 where |x - target| < delta, and delta * (|x - "
             "target| - delta / 2) elsewhere.",
      .attrs = {{"delta", 1.0, "error at which the loss becomes linear"}},
      .check = [](const InferCtx& c) { require_positive(c, "delta"); },
      .loss = huber,
      .derivatives = huber_derivatives,
      .flops = 6,
  });
}

}  // namespace fluid
