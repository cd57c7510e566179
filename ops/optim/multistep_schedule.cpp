#include <cmath>

#include "ops/optim/schedule.h"

namespace fluid {

OpDef multistep_schedule_op() {
  return schedule_def({
      .type = "MultistepDecay",
      .name = "multistep",
      .doc = "Multiplies the learning rate by `factor` at each update of `milestones`, like "
             "PyTorch's MultiStepLR.",
      .settings = {{"milestones", std::vector<int64_t>{}, "numbers of updates, rising", true},
                   decay_factor(0.1)},
      .update_settings = {"milestones"},
      .rate =
          [](const ScheduleCtx& c) {
            double after = c.lr();
            Expr rate = Expr::constant(f64, after);
            for (const double milestone : c.list_of_updates("milestones")) {
              after *= c.number("factor");
              const Expr reached =
                  scalar::compare(ScalarOp::ge, c.update(), Expr::constant(f64, milestone));
              rate = scalar::select(reached, Expr::constant(f64, after), rate);
            }
            return rate;
          },
  });
}

}  // namespace fluid
