#pragma once

#include <set>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace fluid {

/// The parameters on which `loss` depends, in recorded order.
std::vector<Value> parameters_of(Value loss);

/// Returns the parameters of `loss` that at least one of `patterns` (name_pattern.h) selects, or
/// all if `patterns` is empty. Throws UserError for a pattern that selects no parameter.
std::vector<Value> selected_parameters(Value loss, const std::vector<std::string>& patterns,
                                       const Loc& loc);

/// The parameters of the recipe `train`, in recorded order. Includes frozen parameters, which the
/// recipe does not update.
std::vector<Value> recipe_parameters(const ir::Op& train);

/// Names of the recipes that train parameter `name`.
std::set<std::string> recipes_that_train(const ir::Graph& graph, const std::string& name);

}  // namespace fluid
