#include "ops/metric/regression.h"
#include "ops/operators.h"

namespace fluid {

OpDef mean_squared_error_op() {
  return error_metric_def("mean_squared_error",
                          "Mean of (prediction - target)^2 over all elements.",
                          [](Value d) { return d * d; });
}

}  // namespace fluid
