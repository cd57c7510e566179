#include "ops/elementwise.h"
#include "ops/optim/optimizer.h"

namespace fluid {
namespace {

std::vector<Type> infer_ema_update(const InferCtx& c) {
  const Type& average = c.in(0);
  const Type& param = c.in(1);
  c.require(is_float(param.dtype) && is_float(average.dtype) && average.shape == param.shape,
            "the average of a parameter " + param.str() + " cannot be " + average.str());
  c.require(c.in(2) == Type{i64, {}, {}},
            "the update counter must be an i64 scalar, got " + c.in(2).str());
  require_in_range(c, "decay", 0, 1);
  return {average};
}

}  // namespace

OpDef ema_update_op() {
  return OpDef{
      .name = "ema_update",
      .doc =
          "Updates the exponential moving average of a parameter: average = decay * average + (1 - "
          "decay) * param. The first update sets the average to the parameter, as "
          "torch.optim.swa_utils.AveragedModel does.",
      .inputs = {{"average", "float tensor, param's shape"},
                 {"param", "float tensor: the updated parameter"},
                 {"update", "i64 scalar: number of completed updates before this one"}},
      .attrs = {{"decay", 0.0, "weight of the old average, in [0, 1)", true}},
      .outputs = {{"new_average", "same type as average"}},
      .infer = infer_ema_update,
      .grad = NoGrad{},
      .effects = Updates{{{0, 0}}},
      .amp = {Amp::kF32},
      .cost = cost_per_element(4),
      .in_place = {{.out = 0, .in = 0}},
      .lower = Map{[](const LowerCtx& c) {
        const Expr average = c.in(0);
        const Expr param = scalar::cast(c.in(1), compute_dtype(c.in_type(0).dtype));
        const Expr moved = average + (param - average) * (1 - c.attr<double>("decay"));
        const Expr is_first = scalar::compare(ScalarOp::eq, c.in(2), Expr::index(0));
        return std::vector{scalar::select(is_first, param, moved)};
      }},
      .kernels = {},
      .version = 1,
      .internal = true,
  };
}

}  // namespace fluid
