#include "ops/metric/regression.h"
#include "ops/operators.h"

namespace fluid {

OpDef mean_absolute_error_op() {
  return error_metric_def("mean_absolute_error",
                          "Mean of abs(prediction - target) over all elements.",
                          [](Value d) { return abs(d); });
}

}  // namespace fluid
