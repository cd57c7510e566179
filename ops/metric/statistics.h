#pragma once

#include "ops/op_def.h"

namespace fluid {

/// Definition of a metric op. Fields without a comment are documented in OpDef and Metric.
struct MetricDef {
  std::string name, doc;
  std::vector<PortDef> inputs;
  std::vector<AttrDef> attrs = {};
  /// Checks the operands and attributes, and returns the shape of the statistics.
  std::function<Shape(const InferCtx&)> shape;
  std::string statistics;  ///< documentation of the statistics: shape and contents
  /// Computes the statistics, in f64.
  std::function<Value(const ExpandCtx&)> compute;
  std::function<double(std::span<const double>, const Attrs&)> value;
  /// Number of arithmetic operations.
  std::function<double(const CostCtx&)> flops = [](const CostCtx& c) { return c.numel_in(0); };
  int version = 1;
};

OpDef metric_def(MetricDef def);

/// Returns sum / weight of the statistics (sum, weight).
double mean_of_statistics(std::span<const double> statistics, const Attrs& attrs);

/// Converts scalars and vectors to f64 and concatenates them.
Value concat_statistics(const Values& parts);

/// Returns the number of elements of a tensor of shape `shape`, as an f64 scalar.
Value count_elements(const ExpandCtx& c, const Shape& shape);

}  // namespace fluid
