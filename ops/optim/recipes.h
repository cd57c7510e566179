#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace fluid {

/// The training recipes of a program: its `train` ops, in recorded order.
std::vector<ir::Op*> recipes_of(const ir::Graph& graph);

/// Name of a recipe. May be empty if the program has only one recipe.
std::string recipe_name(const ir::Op& train);

/// Name of each recipe, in the order in which the `train` ops were recorded.
std::vector<std::string> recipe_names(const ir::Graph& graph);

/// Names of the parameters that a recipe trains; empty: all trainable parameters that its loss
/// depends on.
std::set<std::string> trained_parameters(const ir::Op& train);

/// Whether the loss of a recipe depends on a parameter that the recipe trains and that is not
/// frozen. Paths through stop_gradient do not count.
bool trains_parameters(const ir::Op& train);
/// Names of the recipes for which steps are compiled: those that train parameters, or all if none
/// does. In recorded order.
std::vector<std::string> trainable_recipes(const ir::Graph& graph);
/// Throws the UserError about a recipe that trains no parameter.
[[noreturn]] void throw_nothing_to_train(const ir::Op& train);

/// The loss of a recipe without the weight penalties (l1, l2) of its parameters.
Value unpenalized_loss(const ir::Op& train);

/// Throws UserError if a recipe name contains characters other than letters, digits, `_`, `-` and
/// `.`. Also throws if two recipes have the same name, if one of several recipes has no name, or if
/// a parameter to train does not exist.
void check_recipes(const ir::Graph& graph);

/// The recipe called `name`. An empty name selects the only recipe. Throws UserError if there is no
/// such recipe, or if the name is empty and there are several.
ir::Op& recipe_named(const ir::Graph& graph, std::string_view name);

/// Name of a state that the training step of a recipe adds to the program, such as "update". The
/// recipe "generator" names it "generator:update", so that recipes do not share their states.
std::string recipe_state(std::string_view recipe, std::string_view state);

}  // namespace fluid
