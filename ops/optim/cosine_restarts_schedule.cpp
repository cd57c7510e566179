#include <cmath>

#include "ops/optim/schedule.h"

namespace fluid {
namespace {

// Added to log(periods) / log(growth) before rounding down. Exceeds the rounding error of the
// quotient, but not its change in one update.
constexpr double kRoundingOfLog = 1e-12;

/// Returns the position in the current period, in [0, 1). `t` is the number of updates since the
/// first period began.
Expr position_in_period(const Expr& t, double period, double growth) {
  if (growth == 1) return t / period - scalar::unary(ScalarOp::floor, t / period);
  const Expr periods = t * ((growth - 1) / period) + 1.0;  // growth^n when period n starts
  const Expr n = scalar::unary(
      ScalarOp::floor, scalar::unary(ScalarOp::log, periods) / std::log(growth) + kRoundingOfLog);
  const Expr scale = scalar::pow(Expr::constant(f64, growth), n);
  return (periods - scale) / (scale * (growth - 1));
}

}  // namespace

OpDef cosine_restarts_schedule_op() {
  return schedule_def({
      .type = "CosineRestarts",
      .name = "cosine_restarts",
      .doc =
          "Cosine annealing from lr to `end` in periods (Loshchilov and Hutter, SGDR, 2017), like "
          "PyTorch's CosineAnnealingWarmRestarts. Each period is `growth` times the one before.",
      .settings = {{.name = "period",
                    .fallback = int64_t{1},
                    .doc = "number of updates of the first period",
                    .required = true,
                    .low = 1},
                   {.name = "growth",
                    .fallback = int64_t{1},
                    .doc = "length of a period / length of the period before",
                    .low = 1},
                   final_rate()},
      .rate =
          [](const ScheduleCtx& c) {
            return cosine_between(
                c.lr(), c.number("end"),
                position_in_period(c.update(), c.number("period"), c.number("growth")));
          },
  });
}

}  // namespace fluid
