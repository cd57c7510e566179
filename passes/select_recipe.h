#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"

namespace fluid {

/// Name of a bool attribute that select_recipe sets on the parameters that the loss of another
/// recipe reads.
inline constexpr const char* kReadByOthers = "read_by_others";

/// Names of the outputs that a step of the recipe `train` computes: its loss, and the outputs that
/// depend only on feeds, parameters and states that the loss reads. The loss of another recipe is
/// never among them.
std::vector<std::string> recipe_outputs(const ir::Graph& graph, const ir::Op& train);

}  // namespace fluid
