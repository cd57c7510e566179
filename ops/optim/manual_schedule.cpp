#include "ops/optim/plateau.h"
#include "ops/optim/schedule.h"

namespace fluid {

OpDef manual_schedule_op() {
  return schedule_def({
      .type = "Manual",
      .name = std::string(kManualSchedule),
      .doc = "lr * lr_factor. Executor::set_learning_rate() sets lr_factor, which is 1 initially.",
      .operands = {{"lr_factor", "float scalar: factor of lr"}},
      .rate = [](const ScheduleCtx& c) { return c.factor() * c.lr(); },
  });
}

}  // namespace fluid
