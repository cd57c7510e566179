#include "ops/index/sort.h"
#include "ops/loss/label.h"
#include "ops/metric/statistics.h"
#include "ops/operators.h"

namespace fluid {

OpDef top_k_accuracy_op() {
  return metric_def(
      {.name = "top_k_accuracy",
       .doc = "Fraction of rows whose label is among the k classes of the largest scores. Of equal "
              "scores, that of the lower class is larger.",
       .inputs = {{"x", "float scores [..., C]"},
                  {"label", "integer class indices, x's shape without C"}},
       .attrs = {{"k", int64_t{5}, "number of classes that count"}},
       .shape =
           [](const InferCtx& c) {
             require_labels(c);
             const auto k = c.attr<int64_t>("k");
             c.require(k >= 1 && c.in(0).shape.back().size >= k,
                       "attribute 'k' is " + std::to_string(k) + ", but " + c.in(0).str() +
                           " has " + c.in(0).shape.back().str() + " classes");
             return Shape{2};
           },
       .statistics = "[2]: number of such rows, number of rows",
       .compute =
           [](const ExpandCtx& c) {
             const Value best = topk(c.in(0), {.k = c.attr<int64_t>("k"), .axis = -1})[1];
             Shape column = c.in(1).shape();
             column.push_back(1);
             const Value hit = cast(equal(best, reshape(cast(c.in(1), i64), column)), f64);
             return concat_statistics({sum(hit), count_elements(c, c.in(1).shape())});
           },
       .value = mean_of_statistics,
       .flops = [](const CostCtx& c) { return sort_flops(c, c.attrs.get<int64_t>("k")); }});
}

}  // namespace fluid
