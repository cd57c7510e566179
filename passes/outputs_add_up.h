#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace fluid {

/// Whether the outputs of micro-batches or shards, scaled by scale_partial_loss, add up to the
/// output of the whole batch. True for metrics and for floats without a batch dimension, such as a
/// loss.
bool is_additive(const ir::Output& output);

/// A value whose sum over micro-batches or shards gives an output for which is_additive() holds:
/// the value of output "loss"; for a metric "accuracy", the values "accuracy.sum" and
/// "accuracy.weight".
struct Summand {
  std::string name;
  Value value;
};
std::vector<Summand> summands(const ir::Graph& graph);

/// Replaces the value of each summand by the result of total(name, value). Calls `total` in the
/// order of summands().
void replace_summands(ir::Graph& graph,
                      const std::function<Value(const std::string&, Value)>& total);

}  // namespace fluid
