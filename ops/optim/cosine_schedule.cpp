#include "ops/optim/schedule.h"

namespace fluid {

OpDef cosine_schedule_op() {
  return schedule_def({
      .type = "Cosine",
      .name = "cosine",
      .doc = "Cosine annealing from lr to `end` at update `steps` (Loshchilov and Hutter, SGDR, "
             "2017, without restarts), like PyTorch's CosineAnnealingLR. The rate stays at `end` "
             "afterwards.",
      .settings = {{"steps", int64_t{1}, "update at which the rate reaches `end`", true},
                   final_rate()},
      .update_settings = {"steps"},
      .rate =
          [](const ScheduleCtx& c) {
            return cosine_between(c.lr(), c.number("end"),
                                  progress(c.update(), c.updates("steps")));
          },
  });
}

}  // namespace fluid
