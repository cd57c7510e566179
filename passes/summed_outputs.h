#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace fluid {

/// Whether the value of the output for the whole batch is the sum of its values for micro-batches
/// or shards, scaled by scale_partial_loss. True for floats without a batch dimension: losses, and
/// the statistics of most metrics.
bool is_additive(const ir::Output& output);

/// An output that is summed over micro-batches or shards.
struct SummedOutput {
  std::string name;
  Value value;
};
std::vector<SummedOutput> summed_outputs(const ir::Graph& graph);

/// Replaces the value of each summed output by the result of total(name, value). Calls `total` in
/// the order of summed_outputs().
void replace_summed_outputs(ir::Graph& graph,
                            const std::function<Value(const std::string&, Value)>& total);

}  // namespace fluid
