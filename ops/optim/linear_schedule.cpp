#include "ops/optim/schedule.h"

namespace fluid {

OpDef linear_schedule_op() {
  return schedule_def({
      .type = "LinearDecay",
      .name = "linear",
      .doc = "A line from lr to `end` at update `steps`, like PyTorch's LinearLR. The rate stays "
             "at `end` afterwards.",
      .settings = {{"steps", int64_t{1}, "update at which the rate reaches `end`", true},
                   final_rate()},
      .update_settings = {"steps"},
      .rate =
          [](const ScheduleCtx& c) {
            const Expr done = progress(c.update(), c.updates("steps"));
            return done * (c.number("end") - c.lr()) + c.lr();
          },
  });
}

}  // namespace fluid
