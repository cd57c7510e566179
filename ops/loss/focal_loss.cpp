#include "ops/loss/elementwise_loss.h"
#include "ops/operators.h"

namespace fluid {
namespace {

/// Lower bound of the base of a power in the derivative, because the exponent may be negative.
constexpr double kLeastBase = 1e-30;

/// Terms of the focal loss of logits `x`.
struct Focal {
  Value p;              ///< sigmoid(x): the probability of class 1
  Value q;              ///< sigmoid(-x) = 1 - sigmoid(x): the probability of class 0
  Value miss;           ///< 1 - the probability of the target class
  Value cross_entropy;  ///< cross-entropy of sigmoid(x) and the target
  double gamma;
  double alpha;
};

Focal focal_of(Value x, Value target, const Attrs& attrs) {
  const Value p = sigmoid(x), q = sigmoid(-x);
  return {p,
          q,
          p * (1.0 - target) + q * target,
          (1.0 - target) * x + softplus_of_negative(x),
          attrs.get<double>("gamma"),
          attrs.get<double>("alpha")};
}

Value power(Value base, double exponent) {
  if (exponent == 1) return base;
  if (exponent == 2) return square(base);
  return pow(base, scalar_like(base, exponent));
}

Value weighted(Value v, Value target, double alpha) {
  return alpha < 0 ? v : v * (alpha * target + (1 - alpha) * (1.0 - target));
}

Value focal(Value x, Value target, const Attrs& attrs) {
  const Focal f = focal_of(x, target, attrs);
  return weighted(f.cross_entropy * power(f.miss, f.gamma), target, f.alpha);
}

Values focal_derivatives(Value x, Value target, const Attrs& attrs) {
  const Focal f = focal_of(x, target, attrs);
  const Value factor = power(f.miss, f.gamma);
  Value dx = (f.p - target) * factor, dtarget = -(x * factor);
  if (f.gamma != 0) {
    const Value base = maximum(f.miss, scalar_like(f.miss, kLeastBase));
    const Value slope = f.gamma * f.cross_entropy * power(base, f.gamma - 1);
    dx = dx + slope * f.p * f.q * (1.0 - 2.0 * target);
    dtarget = dtarget + slope * (f.q - f.p);
  }
  dx = weighted(dx, target, f.alpha);
  dtarget = weighted(dtarget, target, f.alpha);
  if (f.alpha >= 0) dtarget = dtarget + (2 * f.alpha - 1) * f.cross_entropy * factor;
  return {dx, dtarget};
}

}  // namespace

OpDef focal_loss_op() {
  return elementwise_loss_def({
      .name = "focal_loss",
      .doc =
          "Focal loss (Lin et al., 2017) of binary logits: alpha_t * (1 - p_t)^gamma * -log(p_t), "
          "where p_t is the probability of the target class, and alpha_t is alpha for target 1 "
          "and 1 - alpha for target 0. Equals sigmoid_focal_loss of torchvision.",
      .x = {"x", "float tensor of logits"},
      .target = {"target", "same type as x, in [0, 1]"},
      .attrs = {{"alpha", 0.25, "weight of target 1; negative: no weights"},
                {"gamma", 2.0, "exponent of the focusing factor"}},
      .check =
          [](const InferCtx& c) {
            require_not_negative(c, "gamma");
            const double alpha = c.attr<double>("alpha");
            c.require(alpha <= 1, "attribute 'alpha' must be 1 or less");
          },
      .loss = focal,
      .derivatives = focal_derivatives,
      .flops = 50,
  });
}

}  // namespace fluid
