#pragma once

#include <string_view>

#include "ir/graph.h"

namespace fluid {

/// Whether `v` is what an output that is a metric names: the first result of a metric op.
bool is_metric(Value v);

/// An output "accuracy" that is a metric comes with outputs "accuracy.sum" and "accuracy.weight"
/// (scalars of the metric's dtype): an epoch's figure is the sums' sum over the weights' sum.
inline constexpr std::string_view kMetricSum = ".sum";
inline constexpr std::string_view kMetricWeight = ".weight";

}  // namespace fluid
