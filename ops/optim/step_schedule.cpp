#include "ops/optim/optimizer.h"
#include "ops/optim/schedule.h"

namespace fluid {

OpDef step_schedule_op() {
  return schedule_def({
      .name = "step",
      .doc = "Multiplies the learning rate by `factor` every `every` updates, as PyTorch's StepLR.",
      .settings = {{"every", int64_t{1}, "number of updates between two decays", true},
                   {"factor", 0.1, "factor of the learning rate at each decay"}},
      .check =
          [](const InferCtx& c) {
            c.require(c.attr<int64_t>("every") > 0, "attribute 'every' must be above 0");
            require_in_range(c, "factor", 0);
          },
      .rate =
          [](const LowerCtx& c, const Expr& update) {
            const Expr times = scalar::unary(
                ScalarOp::floor, update / static_cast<double>(c.attr<int64_t>("every")));
            const Expr factor = Expr::constant(f64, c.attr<double>("factor"));
            return scalar::pow(factor, times) * c.attr<double>("lr");
          },
  });
}

}  // namespace fluid
