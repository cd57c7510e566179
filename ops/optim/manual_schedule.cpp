#include "ops/optim/plateau.h"
#include "ops/optim/schedule.h"

namespace fluid {

OpDef manual_schedule_op() {
  return schedule_def({
      .name = std::string(kManualSchedule),
      .doc = "lr * lr_factor. Executor::set_learning_rate() sets lr_factor, which is 1 initially.",
      .settings = {},
      .operands = {{"lr_factor", "float scalar: factor of lr"}},
      .check = [](const InferCtx&) {},
      .rate = [](const LowerCtx& c,
                 const Expr&) { return scalar::cast(c.in(1), f64) * c.attr<double>("lr"); },
  });
}

}  // namespace fluid
