#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"

namespace fluid {

/// Name of a bool attribute of `param` ops. select_recipe sets it on the parameters that the loss
/// of a recipe other than the selected one reads.
inline constexpr const char* kReadByOtherRecipes = "read_by_others";

/// Names of the outputs that a step of the recipe `train` computes: its loss, and the outputs that
/// depend only on feeds, parameters and states that the loss reads. Excludes the losses of other
/// recipes.
std::vector<std::string> recipe_outputs(const ir::Graph& graph, const ir::Op& train);

}  // namespace fluid
