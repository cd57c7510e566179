#include "ops/loss/elementwise_loss.h"
#include "ops/operators.h"

namespace fluid {
namespace {

Value kl(Value x, Value target, const Attrs& attrs) {
  if (attrs.get<bool>("log_target")) return exp(target) * (target - x);
  const Value zero = scalar_like(target, 0);
  return where(equal(target, zero), zero, target * log(target)) - target * x;
}

Values kl_derivatives(Value x, Value target, const Attrs& attrs) {
  if (attrs.get<bool>("log_target")) {
    const Value probability = exp(target);
    return {-probability, probability * (target - x + 1.0)};
  }
  return {-target, log(target) + 1.0 - x};
}

}  // namespace

OpDef kl_div_op() {
  return elementwise_loss_def({
      .name = "kl_div",
      .doc =
          "Terms of the Kullback-Leibler divergence of the target from exp(x): target * "
          "(log(target) - x), and 0 - target * x where target is 0. A mean is over all elements; "
          "PyTorch's \"batchmean\" is the sum divided by the batch size.",
      .x = {"x", "float tensor of logarithms of probabilities"},
      .target = {"target", "same type as x: probabilities"},
      .attrs = {{"log_target", false, "target holds logarithms of probabilities"}},
      .loss = kl,
      .derivatives = kl_derivatives,
      .flops = 13,
  });
}

}  // namespace fluid
