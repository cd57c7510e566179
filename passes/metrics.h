#pragma once

#include <string_view>

#include "ir/graph.h"

namespace fluid {

/// Whether `v` is the sum of a metric, the first result of a metric op such as `accuracy`.
bool is_metric(Value v);

/// Suffixes of the outputs into which a metric is split: "accuracy.sum" and "accuracy.weight",
/// scalars of the metric's dtype. The metric over an epoch is the total of the sums divided by the
/// total of the weights.
inline constexpr std::string_view kMetricSum = ".sum";
inline constexpr std::string_view kMetricWeight = ".weight";

}  // namespace fluid
