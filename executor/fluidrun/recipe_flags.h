#pragma once

#include <string>
#include <vector>

#include "executor/trainer/fit_options.h"
#include "frontend/program.h"

namespace CLI {
class App;
}

namespace fluid {

/// Adds --recipes, the cycle of steps of a program of several recipes.
void add_recipes_flag(CLI::App& command, std::string& recipes);
/// Adds --recipe, the recipe whose training step is compiled.
void add_recipe_flag(CLI::App& command, std::string& recipe);

/// The cycle that --recipes gives, such as "d:2,g:1": names of recipes, or unambiguous beginnings
/// of names, with the number of steps of each (default: 1). Empty for a program with one recipe.
/// Throws UserError for text that is no cycle, for an unknown or ambiguous name, and if --recipes
/// is missing for a program of several recipes.
std::vector<RecipeSteps> parse_recipes(const Program& program, const std::string& text);

/// Reduces `program` to the recipe that --recipe names, with its outputs, and returns the name of
/// the recipe. Throws UserError if the program has no such recipe, and if `recipe` is empty and
/// there are several.
std::string select_recipe(Program& program, const std::string& recipe);

/// The recipe that flags such as --lr change; null if the program minimizes nothing, or if it has
/// several recipes and `given` is empty. `given`: the flags as they were given. Throws UserError
/// for `given` flags and several recipes, whose settings the program records.
ir::Op* recipe_to_change(Program& program, const std::string& given);

}  // namespace fluid
