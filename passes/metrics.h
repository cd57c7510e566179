#pragma once

#include <span>

#include "ir/graph.h"

namespace fluid {

/// Whether `v` holds the statistics of a metric, that is, the result of a metric op such as
/// `accuracy`.
bool is_metric(Value v);

/// Whether larger values of the metric `v` are better, as those of `accuracy` are. False for a
/// value that is no metric.
bool is_larger_better(Value v);

/// Computes a metric from its statistics. `op`: the metric op.
double metric_value(const ir::Op& op, std::span<const double> statistics);

}  // namespace fluid
