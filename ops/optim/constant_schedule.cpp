#include "ops/optim/schedule.h"

namespace fluid {

OpDef constant_schedule_op() {
  return schedule_def({
      .type = "ConstantRate",
      .name = "constant",
      .doc = "The learning rate of the optimizer, after the warm-up.",
      .rate = [](const ScheduleCtx& c) { return Expr::constant(f64, c.lr()); },
  });
}

}  // namespace fluid
