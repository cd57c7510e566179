#include "ops/elementwise.h"
#include "ops/loss/elementwise_loss.h"
#include "ops/operators.h"

namespace fluid {

OpDef l1_loss_op() {
  return elementwise_loss_def({
      .name = "l1_loss",
      .doc = "Absolute error |x - target|. Its gradient at 0 is 0.",
      .loss = [](Value x, Value target, const Attrs&) { return abs(x - target); },
      .derivatives =
          [](Value x, Value target, const Attrs&) {
            const Value dx = sign_of(x - target);
            return Values{dx, -dx};
          },
      .flops = 2,
  });
}

}  // namespace fluid
