#include "ops/optim/schedule.h"

namespace fluid {

OpDef piecewise_schedule_op() {
  return schedule_def({
      .type = "PiecewiseConstant",
      .name = std::string(kPiecewiseSchedule),
      .doc =
          "Learning rate `values[i]` from update `boundaries[i - 1]` until before update "
          "`boundaries[i]`, like Paddle's PiecewiseDecay. Replaces the optimizer's learning rate.",
      .settings = {{"boundaries", std::vector<int64_t>{}, "numbers of updates, rising", true},
                   {"values", std::vector<double>{},
                    "learning rates: one more than there are boundaries", true}},
      .update_settings = {"boundaries"},
      .check =
          [](const InferCtx& c) {
            const size_t boundaries = c.attr<std::vector<int64_t>>("boundaries").size();
            const size_t values = c.attr<std::vector<double>>("values").size();
            c.require(values == boundaries + 1, "needs " + std::to_string(boundaries + 1) +
                                                    " 'values' for its 'boundaries', not " +
                                                    std::to_string(values));
          },
      .rate =
          [](const ScheduleCtx& c) {
            const std::vector<double> boundaries = c.list_of_updates("boundaries");
            const std::vector<double>& values = c.numbers("values");
            Expr rate = Expr::constant(f64, values[0]);
            for (size_t i = 0; i < boundaries.size(); ++i) {
              const Expr reached =
                  scalar::compare(ScalarOp::ge, c.update(), Expr::constant(f64, boundaries[i]));
              rate = scalar::select(reached, Expr::constant(f64, values[i + 1]), rate);
            }
            return rate;
          },
  });
}

}  // namespace fluid
