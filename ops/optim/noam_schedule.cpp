#include <cmath>

#include "ops/optim/schedule.h"

namespace fluid {

OpDef noam_schedule_op() {
  return schedule_def({
      .type = "Noam",
      .name = "noam",
      .doc =
          "lr * d_model^-0.5 * min(t^-0.5, t * warmup^-1.5) in update t, from 1 (Vaswani et al., "
          "\"Attention is all you need\", 2017, where lr is 1).",
      .settings = {{.name = "d_model",
                    .fallback = int64_t{512},
                    .doc = "width of the model",
                    .required = true,
                    .low = 1},
                   {.name = "warmup",
                    .fallback = int64_t{4000},
                    .doc = "number of warm-up updates",
                    .required = true,
                    .low = 1}},
      .warms_up = true,
      .rate =
          [](const ScheduleCtx& c) {
            const Expr t = c.update() + 1.0;
            const Expr falling = 1.0 / scalar::unary(ScalarOp::sqrt, t);
            const double slope = std::pow(c.number("warmup"), -1.5);
            return scalar::min(falling, t * slope) * (c.lr() / std::sqrt(c.number("d_model")));
          },
  });
}

}  // namespace fluid
