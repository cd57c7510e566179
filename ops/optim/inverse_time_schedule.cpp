#include "ops/optim/schedule.h"

namespace fluid {

OpDef inverse_time_schedule_op() {
  return schedule_def({
      .type = "InverseTimeDecay",
      .name = "inverse_time",
      .doc = "lr / (1 + decay * t / every) after t updates, like Keras's InverseTimeDecay.",
      .settings =
          {{"decay", 0.01, "increase of the divisor 1 + decay * t / every in `every` updates",
            true},
           {.name = "every",
            .fallback = int64_t{1},
            .doc = "number of updates in which the divisor rises by `decay`",
            .low = 1},
           {"staircase", false,
            "changes the learning rate only after each `every` updates: rounds t / every down"}},
      .rate =
          [](const ScheduleCtx& c) {
            const Expr times = c.update() / c.number("every");
            const Expr t = c.flag("staircase") ? scalar::unary(ScalarOp::floor, times) : times;
            return c.lr() / (t * c.number("decay") + 1.0);
          },
  });
}

}  // namespace fluid
