#include "ops/elementwise.h"
#include "ops/optim/average.h"

namespace fluid {
namespace {

Expr swa_average(const LowerCtx& c) {
  const Expr average = c.in(0);
  const Expr param = scalar::cast(c.in(1), compute_dtype(c.in_type(0).dtype));
  const Expr since = c.in(2) + Expr::index(1 - c.attr<int64_t>("start"));
  const Expr every = Expr::index(c.attr<int64_t>("every"));
  const Expr averaged = scalar::cast(scalar::floordiv(since, every), average.dtype());
  const Expr moved = average + (param - average) / (averaged + 1.0);
  const Expr is_before = scalar::compare(ScalarOp::le, since, Expr::index(0));
  const Expr is_averaged = scalar::compare(ScalarOp::eq, scalar::mod(since, every), Expr::index(0));
  return scalar::select(is_before, param, scalar::select(is_averaged, moved, average));
}

}  // namespace

OpDef swa_update_op() {
  return average_def(
      "swa_update",
      "Updates the equal-weight average of a parameter over training (Izmailov et al., \"Averaging "
      "weights leads to wider optima and better generalization\", 2018): the mean of the parameter "
      "after update `start` and after each `every` further updates, as "
      "torch.optim.swa_utils.AveragedModel computes it. Before, the average is the parameter.",
      {{"start", int64_t{1}, "number of the first update, from 1, that is averaged", true},
       {"every", int64_t{1}, "number of updates between two that are averaged"}},
      [](const InferCtx& c) {
        for (const char* name : {"start", "every"}) {
          c.require(c.attr<int64_t>(name) > 0, "attribute '" + std::string(name) +
                                                   "' must be above 0, not " +
                                                   std::to_string(c.attr<int64_t>(name)));
        }
      },
      swa_average);
}

}  // namespace fluid
