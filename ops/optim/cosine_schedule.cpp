#include <numbers>

#include "ops/optim/optimizer.h"
#include "ops/optim/schedule.h"

namespace fluid {

OpDef cosine_schedule_op() {
  return schedule_def({
      .name = "cosine",
      .doc = "Linear warmup to lr over `warmup` updates, then cosine annealing to `end` at update "
             "`steps` (Loshchilov and Hutter, SGDR, 2017, without restarts). The rate stays at "
             "`end` afterwards.",
      .settings = {{"steps", int64_t{1}, "update at which the rate reaches `end`", true},
                   {"warmup", int64_t{0}, "number of warmup updates"},
                   {"end", 0.0, "final learning rate"}},
      .check =
          [](const InferCtx& c) {
            const int64_t warmup = c.attr<int64_t>("warmup");
            c.require(warmup >= 0, "attribute 'warmup' must not be negative");
            c.require(c.attr<int64_t>("steps") > warmup,
                      "attribute 'steps' must be above 'warmup', " + std::to_string(warmup));
            require_in_range(c, "end", 0);
          },
      .rate =
          [](const LowerCtx& c, const Expr& update) {
            const double lr = c.attr<double>("lr"), end = c.attr<double>("end");
            const auto warmup = static_cast<double>(c.attr<int64_t>("warmup"));
            const auto steps = static_cast<double>(c.attr<int64_t>("steps"));
            const Expr done =
                scalar::min((update - warmup) / (steps - warmup), Expr::constant(f64, 1));
            const Expr cosine = scalar::unary(ScalarOp::cos, done * std::numbers::pi);
            const Expr falling = (cosine + 1.0) * (0.5 * (lr - end)) + end;
            const Expr rising = (update + 1.0) * (lr / std::max(warmup, 1.0));
            const Expr warm = Expr::constant(f64, warmup);
            return scalar::select(scalar::compare(ScalarOp::lt, update, warm), rising, falling);
          },
  });
}

}  // namespace fluid
