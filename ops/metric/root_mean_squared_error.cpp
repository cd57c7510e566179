#include "ops/metric/regression.h"
#include "ops/operators.h"

namespace fluid {

OpDef root_mean_squared_error_op() {
  return error_metric_def(
      "root_mean_squared_error",
      "Square root of the mean of (prediction - target)^2 over all elements of the epoch.",
      [](Value d) { return d * d; }, true);
}

}  // namespace fluid
