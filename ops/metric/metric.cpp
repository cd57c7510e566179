#include "ops/metric/statistics.h"

namespace fluid {

OpDef metric_op() {
  return metric_def(
      {.name = "metric",
       .doc =
           "A user-defined metric. Its value is sum / weight. Over the steps of an epoch the sums "
           "and the weights are added separately.",
       .inputs = {{"sum", "float scalar"}, {"weight", "of sum's type"}},
       .shape =
           [](const InferCtx& c) {
             c.require(is_float(c.in(0).dtype) && c.in(0).shape.empty() && c.in(0) == c.in(1),
                       "expects two float scalars of one type, got " + c.in(0).str() + " and " +
                           c.in(1).str());
             return Shape{2};
           },
       .statistics = "[2]: sum, weight",
       .compute =
           [](const ExpandCtx& c) {
             return concat_statistics({c.in(0), c.in(1)});
           },
       .value = mean_of_statistics,
       .version = 2});
}

}  // namespace fluid
