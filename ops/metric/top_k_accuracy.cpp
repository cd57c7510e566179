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
             const Value x = c.in(0);
             const int64_t classes = x.shape().back().size;
             Shape column = c.in(1).shape();
             column.push_back(1);
             const Value label = reshape(cast(c.in(1), i64), column);
             const Value own = take_along_axis(x, label, {.axis = -1});
             const Value number = arange(*c.op().graph(), {.type = Type{i64, {classes}, {}}});
             const Value tied_before = logical_and(equal(x, own), less(number, label));
             const Value comes_before = logical_or(greater(x, own), tied_before);
             const Value rank = sum(cast(comes_before, f64), {.axes = {-1}});
             const Value hit =
                 less(rank, scalar_like(rank, static_cast<double>(c.attr<int64_t>("k"))));
             return concat_statistics({sum(cast(hit, f64)), count_elements(c, rank.shape())});
           },
       .value = mean_of_statistics});
}

}  // namespace fluid
