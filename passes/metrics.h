#pragma once

#include <string_view>

#include "ir/graph.h"

namespace fluid {

/// Whether `v` is the first result of a metric op.
bool is_metric(Value v);

/// A metric output "accuracy" is split into the outputs "accuracy.sum" and "accuracy.weight",
/// scalars of the metric's dtype. The value over an epoch is the sum of the sums divided by the sum
/// of the weights.
inline constexpr std::string_view kMetricSum = ".sum";
inline constexpr std::string_view kMetricWeight = ".weight";

}  // namespace fluid
