#include "ops/loss/elementwise_loss.h"
#include "ops/operators.h"

namespace fluid {
namespace {

/// Lower bound of log(x) and log(1 - x), as in PyTorch, so that the loss is finite.
constexpr double kLeastLog = -100;
constexpr double kLeastVariance = 1e-12;  // lower bound of the divisor x * (1 - x)

Value clamped_log(Value logarithm) { return maximum(logarithm, scalar_like(logarithm, kLeastLog)); }

Value cross_entropy(Value x, Value target, const Attrs&) {
  return (target - 1.0) * clamped_log(log1p(-x)) - target * clamped_log(log(x));
}

Values cross_entropy_derivatives(Value x, Value target, const Attrs&) {
  const Value variance = x * (1.0 - x);
  const Value dx = (x - target) / maximum(variance, scalar_like(x, kLeastVariance));
  return {dx, log1p(-x) - log(x)};
}

}  // namespace

OpDef binary_cross_entropy_op() {
  return elementwise_loss_def({
      .name = "binary_cross_entropy",
      .doc =
          "Binary cross-entropy of probabilities: -(target * log(x) + (1 - target) * log(1 - x)). "
          "Logarithms are at least -100. binary_cross_entropy_with_logits is more accurate.",
      .x = {"x", "float tensor of probabilities"},
      .target = {"target", "same type as x, in [0, 1]"},
      .loss = cross_entropy,
      .derivatives = cross_entropy_derivatives,
      .flops = 25,
  });
}

}  // namespace fluid
