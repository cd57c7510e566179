#pragma once

#include <string_view>

namespace fluid {

/// An output "accuracy" that is a metric comes with outputs "accuracy.sum" and "accuracy.weight"
/// (scalars of the metric's dtype): an epoch's figure is the sums' sum over the weights' sum.
inline constexpr std::string_view kMetricSum = ".sum";
inline constexpr std::string_view kMetricWeight = ".weight";

}  // namespace fluid
