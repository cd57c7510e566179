#pragma once

#include "ops/metric/statistics.h"

namespace fluid {

/// Definition of a metric that is a function of the mean of `error(prediction - target)` over all
/// elements. `root`: the metric is the square root of this mean.
OpDef error_metric_def(std::string name, std::string doc, Value (*error)(Value difference),
                       bool root = false);

/// Operands of a regression metric.
std::vector<PortDef> regression_inputs();

/// Throws UserError unless both operands are float tensors of one type.
void require_regression(const InferCtx& c);

}  // namespace fluid
