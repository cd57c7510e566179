#include "ops/optim/schedule.h"

namespace fluid {

OpDef exponential_schedule_op() {
  return schedule_def({
      .type = "ExponentialDecay",
      .name = "exponential",
      .doc = "lr * factor^(t / every) after t updates, like PyTorch's ExponentialLR.",
      .settings = {{"factor", 0.99, "factor of the learning rate after `every` updates", true},
                   {.name = "every",
                    .fallback = int64_t{1},
                    .doc = "number of updates in which the learning rate is multiplied by `factor`",
                    .low = 1}},
      .rate =
          [](const ScheduleCtx& c) {
            const Expr factor = Expr::constant(f64, c.number("factor"));
            return scalar::pow(factor, c.update() / c.number("every")) * c.lr();
          },
  });
}

}  // namespace fluid
