#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace fluid {

/// Whether an output's figure for a batch is the sum of those of its parts, where each is weighted
/// by its samples: a metric, or a float that has no batch extent, such as a loss.
bool adds_up(const ir::Output& output);

/// What outputs that add up are made of: "loss", or "accuracy.sum" and "accuracy.weight" of a
/// metric.
struct Summand {
  std::string name;
  Value value;
};
std::vector<Summand> summands(const ir::Graph& graph);

/// Puts `total(name, value)` in the place of each of them, in the same order.
void replace_summands(ir::Graph& graph,
                      const std::function<Value(const std::string&, Value)>& total);

}  // namespace fluid
