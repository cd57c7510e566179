#include "ops/op_def.h"

namespace fluid {

OpDef metric_op() {
  return OpDef{
      .name = "metric",
      .doc =
          "A user-defined metric. Its value is sum / weight. Over the steps of an epoch the sums "
          "and the weights are added separately.",
      .inputs = {{"sum", "float scalar"}, {"weight", "of sum's type"}},
      .attrs = {},
      .outputs = {{.name = "total", .doc = "sum"},
                  {.name = "count", .doc = "weight", .auxiliary = true}},
      .infer =
          [](const InferCtx& c) {
            c.require(is_float(c.in(0).dtype) && c.in(0).shape.empty() && c.in(0) == c.in(1),
                      "expects two float scalars of one type, got " + c.in(0).str() + " and " +
                          c.in(1).str());
            return std::vector{c.in(0), c.in(1)};
          },
      .grad = NoGrad{},
      .effects = Metric{},
      .amp = {Amp::kF32},
      .cost = [](const CostCtx&) { return Cost{.flops = 0, .bytes = 0}; },
      .in_place = {},
      .lower = Expand{[](const ExpandCtx& c) {
        return Values{c.in(0), c.in(1)};
      }},
      .kernels = {},
      .version = 1,
  };
}

}  // namespace fluid
