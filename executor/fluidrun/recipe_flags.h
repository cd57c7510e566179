#pragma once

#include <string>
#include <vector>

#include "executor/trainer/fit_options.h"
#include "frontend/program.h"

namespace CLI {
class App;
}

namespace fluid {

/// Adds --recipes, which tells how the steps of several training recipes alternate.
void add_recipes_flag(CLI::App& command, std::string& recipes);
/// Adds --recipe, which selects the training recipe whose step is compiled.
void add_recipe_flag(CLI::App& command, std::string& recipe);

/// Parses the value of --recipes, such as "d:2,g:1": recipe names, or unambiguous prefixes of them,
/// each with its number of steps (default: 1). Returns an empty cycle for a program with one
/// recipe. Throws UserError for a malformed cycle, for an unknown or ambiguous name, and if
/// --recipes is missing for a program of several recipes.
std::vector<RecipeSteps> parse_recipes(const Program& program, const std::string& text);

/// Removes all recipes except the one that --recipe names, and the outputs and state updates of the
/// removed recipes. Returns the name of the recipe. Throws UserError if the program has no such
/// recipe, or if it has several and `recipe` is empty.
std::string select_recipe(Program& program, const std::string& recipe);

/// Returns the name of the recipe called `text`, or of the only recipe whose name begins with
/// `text`. Throws UserError if there is none. Its message begins with `given`, the flag.
std::string recipe_called(const Program& program, const std::string& text,
                          const std::string& given);

/// Returns the recipe that flags such as --lr change. `given`: the text of these flags on the
/// command line; empty if there are none. `recipe`: the name of one of several recipes. Returns
/// null for a program without a recipe. For a program with several recipes, returns null if both
/// `given` and `recipe` are empty, and throws UserError if only `recipe` is empty.
ir::Op* recipe_to_change(Program& program, const std::string& given,
                         const std::string& recipe = "");

}  // namespace fluid
