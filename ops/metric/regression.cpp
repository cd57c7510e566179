#include "ops/metric/regression.h"

#include <cmath>

#include "ops/operators.h"

namespace fluid {

std::vector<PortDef> regression_inputs() {
  return {{"prediction", "float tensor"}, {"target", "of prediction's type"}};
}

void require_regression(const InferCtx& c) {
  c.require(is_float(c.in(0).dtype) && c.in(0) == c.in(1),
            "expects predictions and targets of one float type, got " + c.in(0).str() + " and " +
                c.in(1).str());
}

OpDef error_metric_def(std::string name, std::string doc, Value (*error)(Value), bool root) {
  return metric_def({.name = std::move(name),
                     .doc = std::move(doc),
                     .inputs = regression_inputs(),
                     .shape =
                         [](const InferCtx& c) {
                           require_regression(c);
                           return Shape{2};
                         },
                     .statistics = "[2]: sum over the elements, number of elements",
                     .compute =
                         [error](const ExpandCtx& c) {
                           const Value difference = cast(c.in(0), f64) - cast(c.in(1), f64);
                           return concat_statistics(
                               {sum(error(difference)), count_elements(c, difference.shape())});
                         },
                     .value =
                         [root](std::span<const double> statistics, const Attrs& attrs) {
                           const double mean = mean_of_statistics(statistics, attrs);
                           return root ? std::sqrt(mean) : mean;
                         }});
}

}  // namespace fluid
