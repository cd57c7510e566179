#pragma once

#include <set>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace fluid {

/// The parameters on which `loss` depends, in recorded order.
std::vector<Value> parameters_of(Value loss);

/// Returns those of parameters_of(loss) that any of `patterns` (name_pattern.h) selects; all if
/// there are no patterns. Throws UserError for a pattern that selects none.
std::vector<Value> selected_parameters(Value loss, const std::vector<std::string>& patterns,
                                       const Loc& loc);

/// The parameters that a recipe may train, in recorded order; some may be frozen.
std::vector<Value> trained_by(const ir::Op& train);

/// Names of the recipes that train parameter `name`.
std::set<std::string> recipes_that_train(const ir::Graph& graph, const std::string& name);

}  // namespace fluid
