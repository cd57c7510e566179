#include "ops/optim/average.h"
#include "ops/optim/optimizer.h"

namespace fluid {

OpDef ema_update_op() {
  return average_def(
      "ema_update",
      "Updates the exponential moving average of a parameter: average = decay * average + (1 - "
      "decay) * param. The first update sets the average to the parameter, as "
      "torch.optim.swa_utils.AveragedModel does.",
      {{"decay", 0.0, "weight of the old average, in [0, 1)", true}},
      [](const InferCtx& c) { require_in_range(c, "decay", 0, 1); },
      [](const LowerCtx& c) {
        const Expr average = c.in(0);
        const Expr param = scalar::cast(c.in(1), compute_dtype(c.in_type(0).dtype));
        const Expr moved = average + (param - average) * (1 - c.attr<double>("decay"));
        const Expr is_first = scalar::compare(ScalarOp::eq, c.in(2), Expr::index(0));
        return scalar::select(is_first, param, moved);
      });
}

}  // namespace fluid
