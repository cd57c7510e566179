#include "ops/loss/elementwise_loss.h"
#include "ops/operators.h"

namespace fluid {

OpDef mse_loss_op() {
  OpDef def = elementwise_loss_def({
      .name = "mse_loss",
      .doc = "Squared error (x - target)^2.",
      .loss = [](Value x, Value target, const Attrs&) { return square(x - target); },
      .derivatives =
          [](Value x, Value target, const Attrs&) {
            const Value dx = 2.0 * (x - target);
            return Values{dx, -dx};
          },
      .flops = 2,
  });
  def.version = 2;  // version 1 had no attribute `reduction`
  return def;
}

}  // namespace fluid
