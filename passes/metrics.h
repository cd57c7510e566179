#pragma once

#include <string_view>

#include "ir/graph.h"

namespace fluid {

/// Whether `v` is the sum of a metric, the first result of a metric op such as `accuracy`.
bool is_metric(Value v);

/// Suffixes of the two outputs into which a metric is split, as in "accuracy.sum" and
/// "accuracy.weight". Both are scalars of the metric's dtype. The metric over an epoch is the total
/// sum divided by the total weight.
inline constexpr std::string_view kMetricSum = ".sum";
inline constexpr std::string_view kMetricWeight = ".weight";

}  // namespace fluid
