#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace fluid {

/// Whether an output of a batch is the sum of its values for parts of the batch, weighted by their
/// samples. True for metrics and for floats without a batch dimension, such as a loss.
bool is_additive(const ir::Output& output);

/// A summand of an output for which is_additive() holds: "loss", or "accuracy.sum" and
/// "accuracy.weight" of a metric.
struct Summand {
  std::string name;
  Value value;
};
std::vector<Summand> summands(const ir::Graph& graph);

/// Replaces each summand by total(name, value), in the order of summands().
void replace_summands(ir::Graph& graph,
                      const std::function<Value(const std::string&, Value)>& total);

}  // namespace fluid
