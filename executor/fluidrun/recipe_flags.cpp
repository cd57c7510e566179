#include "executor/fluidrun/recipe_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

#include "executor/cpu/cpu_target.h"
#include "executor/host/target_description.h"
#include "ir/error.h"
#include "ir/number.h"
#include "ir/text.h"
#include "ops/optim/recipes.h"
#include "ops/table.h"
#include "passes/pass_table.h"

namespace fluid {
void add_recipes_flag(CLI::App& command, std::string& recipes) {
  command
      .add_option("--recipes", recipes,
                  "cycle of steps of a program of several recipes: names, or beginnings of names, "
                  "each with its number of steps, such as d:2,g:1")
      ->type_name("NAME:STEPS,...");
}

void add_recipe_flag(CLI::App& command, std::string& recipe) {
  command
      .add_option("--recipe", recipe,
                  "recipe of the training step, of a program with several: its name, or the "
                  "beginning of its name")
      ->type_name("NAME");
}

std::vector<RecipeSteps> parse_recipes(const Program& program, const std::string& text) {
  check_recipes(program.ir().main());
  const std::vector<std::string> names = recipe_names(program.ir().main());
  if (text.empty()) {
    if (names.size() <= 1) return {};
    throw UserError(
        fmt::format("program '{}' has the recipes {}: give the steps of each in a "
                    "cycle, such as --recipes {}:1",
                    program.ir().name, fmt::join(names, ", "), fmt::join(names, ":1,")));
  }
  const std::string command_line_text = "--recipes " + text;
  if (names.size() <= 1) {
    throw UserError(fmt::format("{}: program '{}' does not have several recipes", command_line_text,
                                program.ir().name));
  }
  std::vector<RecipeSteps> cycle;
  for (const std::string& part : ir::split_at_commas(text)) {
    const size_t colon = part.find(':');
    const std::string steps = colon == std::string::npos ? "1" : part.substr(colon + 1);
    const int64_t number = parse_number<int64_t>(steps).value_or(0);
    if (number < 1) {
      throw UserError(fmt::format("{}: the steps of '{}' must be a positive integer, not '{}'",
                                  command_line_text, part.substr(0, colon), steps));
    }
    cycle.push_back({recipe_called(program, part.substr(0, colon), command_line_text), number});
  }
  return cycle;
}

std::string select_recipe(Program& program, const std::string& recipe) {
  check_recipes(program.ir().main());
  const std::vector<std::string> names = recipe_names(program.ir().main());
  if (recipe.empty() && names.size() > 1) {
    throw UserError(fmt::format("program '{}' has the recipes {}: give --recipe {}",
                                program.ir().name, fmt::join(names, ", "), names.front()));
  }
  const Options options{
      .recipe = recipe.empty() ? "" : recipe_called(program, recipe, "--recipe " + recipe)};
  select_recipe_pass().run(program.ir(), options, CpuTarget(TargetDescription{}));
  return names.empty() ? "" : recipe_names(program.ir().main()).front();
}

std::string recipe_called(const Program& program, const std::string& text,
                          const std::string& command_line_text) {
  const std::vector<std::string> names = recipe_names(program.ir().main());
  if (std::ranges::find(names, text) != names.end()) return text;
  std::vector<std::string> found;
  for (const std::string& name : names) {
    if (!text.empty() && name.starts_with(text)) found.push_back(name);
  }
  if (found.size() == 1) return found.front();
  throw UserError(fmt::format("{}: program '{}' has {} '{}'; there are {}", command_line_text,
                              program.ir().name,
                              found.empty() ? "no recipe" : "several recipes that begin with", text,
                              fmt::join(names, ", ")));
}

ir::Op* recipe_to_change(Program& program, const std::string& command_line_text,
                         const std::string& recipe) {
  if (!recipe.empty()) return &recipe_named(program.ir().main(), recipe);
  const std::vector<ir::Op*> recipes = recipes_of(program.ir().main());
  if (recipes.size() == 1) return recipes.front();
  if (recipes.size() > 1 && !command_line_text.empty()) {
    throw UserError(fmt::format(
        "{}: changes the only recipe of a program, but '{}' has {}; train --recipe-option "
        "and plan --recipe choose one",
        command_line_text, program.ir().name, fmt::join(recipe_names(program.ir().main()), ", ")));
  }
  return nullptr;
}

void check_recipe_settings(ir::Op& train, const std::string& command_line_text) {
  const Loc loc = std::exchange(train.loc, Loc());  // the message names the flag instead
  std::string error;
  try {
    infer_types(train);
  } catch (const UserError& e) {
    error = e.what();
  }
  train.loc = loc;
  if (!error.empty()) throw UserError(fmt::format("{}: {}", command_line_text, error));
}

}  // namespace fluid
