#include "ops/loss/label.h"
#include "ops/metric/statistics.h"
#include "ops/operators.h"

namespace fluid {

OpDef accuracy_op() {
  return metric_def(
      {.name = "accuracy",
       .doc = "Fraction of rows whose argmax is the label. The first of equal maxima wins.",
       .inputs = {{"x", "float scores [..., C]"},
                  {"label", "integer class indices, x's shape without C"}},
       .shape =
           [](const InferCtx& c) {
             require_labels(c);
             return Shape{2};
           },
       .statistics = "[2]: number of such rows, number of rows",
       .compute =
           [](const ExpandCtx& c) {
             const Value best = argmax(c.in(0), {.axis = -1});
             const Value hit = cast(equal(best, cast(c.in(1), i64)), f64);
             return concat_statistics({sum(hit), count_elements(c, best.shape())});
           },
       .value = mean_of_statistics,
       .version = 2});
}

}  // namespace fluid
