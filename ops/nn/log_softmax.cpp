#include "ops/nn/axis.h"
#include "ops/operators.h"

namespace fluid {

OpDef log_softmax_op() {
  return OpDef{
      .name = "log_softmax",
      .doc = "log(softmax(x)) along `axis`, computed in a numerically stable form.",
      .inputs = {{"x", "float tensor, rank >= 1"}},
      .attrs = {{"axis", int64_t{-1}, "axis to normalise; negative: counted from the end"}},
      .outputs = {{"y", "same type as x"}},
      .infer = infer_along_axis,
      .grad = GradFn([](const GradCtx& c) {
        const Value y = c.out(0), dy = c.dout(0);
        const int64_t axis = c.attr<int64_t>("axis");
        return Values{dy - exp(y) * sum(dy, {.axes = axis, .keep_dims = true})};
      }),
      .effects = Pure{},
      .amp = {Amp::kF32},
      .cost = [](const CostCtx& c) { return Cost{.flops = 5 * c.numel_in(0)}; },
      .in_place = {},
      .lower = Expand{[](const ExpandCtx& c) {
        const int64_t axis = c.attr<int64_t>("axis");
        if (is_empty_along_axis(c)) return Values{c.in(0)};
        const Value shifted = c.in(0) - max(c.in(0), {.axes = axis, .keep_dims = true});
        return Values{shifted - log(sum(exp(shifted), {.axes = axis, .keep_dims = true}))};
      }},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
