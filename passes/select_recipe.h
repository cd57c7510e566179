#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"

namespace fluid {

/// Names of the outputs that a step of the recipe `train` computes: its loss, and the outputs that
/// read no feed, parameter or state besides those that the loss reads. The loss of another recipe
/// is never among them.
std::vector<std::string> recipe_outputs(const ir::Graph& graph, const ir::Op& train);

}  // namespace fluid
