#include "ops/optim/schedule.h"

namespace fluid {

OpDef step_schedule_op() {
  return schedule_def({
      .type = "StepDecay",
      .name = "step",
      .doc =
          "Multiplies the learning rate by `factor` every `every` updates, like PyTorch's StepLR.",
      .settings = {{.name = "every",
                    .fallback = int64_t{1},
                    .doc = "number of updates between two decays",
                    .required = true,
                    .low = 1},
                   decay_factor(0.1)},
      .rate =
          [](const ScheduleCtx& c) {
            const Expr times = scalar::unary(ScalarOp::floor, c.update() / c.number("every"));
            return scalar::pow(Expr::constant(f64, c.number("factor")), times) * c.lr();
          },
  });
}

}  // namespace fluid
