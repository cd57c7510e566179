#pragma once

#include <string>
#include <vector>

#include "executor/trainer/fit_options.h"
#include "frontend/program.h"

namespace CLI {
class App;
}

namespace fluid {

/// Adds --recipes, the cycle in which the steps of several training recipes alternate.
void add_recipes_flag(CLI::App& command, std::string& recipes);
/// Adds --recipe, which selects the training recipe whose step is compiled.
void add_recipe_flag(CLI::App& command, std::string& recipe);

/// Parses the value of --recipes, such as "d:2,g:1": recipe names, or unambiguous prefixes of them,
/// each with its number of steps (default: 1). Returns an empty cycle for a program with one
/// recipe. Throws UserError for a malformed cycle, for an unknown or ambiguous name, and if
/// --recipes is missing for a program of several recipes.
std::vector<RecipeSteps> parse_recipes(const Program& program, const std::string& text);

/// Removes all recipes except the one that `recipe`, the value of --recipe, selects. Also removes
/// the outputs and state updates of the removed recipes. Returns the name of the remaining recipe.
/// Throws UserError if `recipe` is unknown or ambiguous, or if `recipe` is empty and the program
/// has several recipes.
std::string select_recipe(Program& program, const std::string& recipe);

/// Returns the name of the recipe called `text`, or of the only recipe whose name begins with
/// `text`. Throws UserError if no recipe or several recipes match. The error message begins with
/// `command_line_text`, the flag and its value.
std::string recipe_called(const Program& program, const std::string& text,
                          const std::string& command_line_text);

/// Returns the recipe to which flags such as --lr apply: the recipe named `recipe`, or the only
/// recipe if `recipe` is empty. `command_line_text`: the given flags, for error messages; empty if
/// no flag is given. If `recipe` is empty:
/// - returns null if the program has no recipe;
/// - throws UserError if the program has several recipes and a flag is given;
/// - returns null if the program has several recipes and no flag is given.
ir::Op* recipe_to_change(Program& program, const std::string& command_line_text,
                         const std::string& recipe = "");

/// Checks the attributes of the recipe `train`. Throws UserError for a wrong one. The error message
/// begins with `command_line_text`, the flags that set the attributes, instead of the location of
/// the recipe.
void check_recipe_settings(ir::Op& train, const std::string& command_line_text);

}  // namespace fluid
