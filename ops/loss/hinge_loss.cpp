#include "ops/loss/elementwise_loss.h"
#include "ops/operators.h"

namespace fluid {

OpDef hinge_loss_op() {
  return elementwise_loss_def({
      .name = "hinge_loss",
      .doc = "Hinge loss of a binary classifier (Cortes and Vapnik, 1995): max(0, 1 - target * x). "
             "PyTorch has no such loss; its hinge_embedding_loss has another definition.",
      .x = {"x", "float tensor of scores"},
      .target = {"target", "same type as x: -1 or 1"},
      .loss =
          [](Value x, Value target, const Attrs&) {
            const Value margin = 1.0 - target * x;
            return maximum(margin, scalar_like(margin, 0));
          },
      .derivatives =
          [](Value x, Value target, const Attrs&) {
            const Value zero = scalar_like(x, 0);
            const Value inside = less(target * x, scalar_like(x, 1));
            return Values{where(inside, -target, zero), where(inside, -x, zero)};
          },
      .flops = 3,
  });
}

}  // namespace fluid
