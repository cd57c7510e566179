#include "ops/optim/schedule.h"

namespace fluid {

OpDef polynomial_schedule_op() {
  return schedule_def({
      .type = "PolynomialDecay",
      .name = "polynomial",
      .doc =
          "(lr - end) * (1 - t / steps)^power + end after t updates, like PyTorch's PolynomialLR "
          "and Keras's PolynomialDecay. The rate stays at `end` from update `steps` on.",
      .settings = {{"steps", int64_t{1}, "update at which the rate reaches `end`", true},
                   {"power", 1.0, "exponent"},
                   final_rate()},
      .update_settings = {"steps"},
      .rate =
          [](const ScheduleCtx& c) {
            const Expr left = 1.0 - progress(c.update(), c.updates("steps"));
            const Expr power = Expr::constant(f64, c.number("power"));
            return scalar::pow(left, power) * (c.lr() - c.number("end")) + c.number("end");
          },
  });
}

}  // namespace fluid
