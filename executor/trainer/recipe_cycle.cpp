#include "executor/trainer/recipe_cycle.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "ir/error.h"
#include "ops/optim/recipes.h"
#include "passes/check_recorded.h"

namespace fluid {
namespace {

FitRecipe fit_recipe(const ir::Graph& graph, const std::string& name, int64_t steps) {
  const ir::Op& train = recipe_named(graph, name);
  if (!trains_parameters(train)) throw_nothing_to_train(train);
  FitRecipe recipe{
      .name = recipe_name(train), .steps = steps, .loss = {}, .lr = train.attrs.get_or("lr", 0.0)};
  const auto loss = std::ranges::find(graph.outputs, unpenalized_loss(train), &ir::Output::value);
  if (loss != graph.outputs.end()) recipe.loss = loss->name;
  return recipe;
}

/// Returns ", such as its output 'loss'", with a scalar output that could be minimized; empty if
/// there is none.
std::string example_of_loss(const ir::Graph& graph) {
  const auto is_loss = [](const ir::Output& o) {
    return o.value.shape().empty() && is_float(o.value.dtype());
  };
  const auto found = std::ranges::find_if(graph.outputs, is_loss);
  return found == graph.outputs.end() ? "" : ", such as its output '" + found->name + "'";
}

}  // namespace

RecipeCycle::RecipeCycle(const Program& program, const std::vector<RecipeSteps>& steps) {
  const ir::Graph& graph = program.ir().main();
  const std::vector<std::string> names = recipe_names(graph);
  if (names.empty()) {
    check_is_recorded(program.ir());
    throw UserError("program '" + program.ir().name +
                    "' cannot be trained: it minimizes nothing; record minimize() of a loss" +
                    example_of_loss(graph));
  }
  check_recipes(graph);
  if (steps.empty() && names.size() > 1) {
    throw UserError(fmt::format(
        "program '{}' has the recipes {}: give the steps of each in a cycle, such as {}:1",
        program.ir().name, fmt::join(names, ", "), fmt::join(names, ":1,")));
  }
  if (steps.empty()) recipes_.push_back(fit_recipe(graph, names.front(), 1));
  for (const RecipeSteps& each : steps) {
    if (each.steps < 1) {
      throw UserError(fmt::format("recipe '{}' has {} steps in a cycle; it needs at least 1",
                                  each.recipe, each.steps));
    }
    if (std::ranges::find(recipes_, each.recipe, &FitRecipe::name) != recipes_.end()) {
      throw UserError("recipe '" + each.recipe + "' is twice in the cycle");
    }
    recipes_.push_back(fit_recipe(graph, each.recipe, each.steps));
  }
  for (const FitRecipe& recipe : recipes_) length_ += recipe.steps;
}

size_t RecipeCycle::recipe_index(int64_t step) const {
  int64_t position = step % length_;
  size_t index = 0;
  while (position >= recipes_[index].steps) position -= recipes_[index++].steps;
  return index;
}

int64_t RecipeCycle::steps_of(size_t index, int64_t steps) const {
  int64_t before = 0;
  for (size_t i = 0; i < index; ++i) before += recipes_[i].steps;
  const int64_t each = recipes_[index].steps;
  return steps / length_ * each + std::clamp<int64_t>(steps % length_ - before, 0, each);
}

int64_t RecipeCycle::steps_of(size_t index, int64_t steps, const TrainingState& from) const {
  if (from.recipe_steps.empty()) return steps_of(index, steps);
  const auto run = from.recipe_steps.find(recipes_[index].name);
  const int64_t remaining =
      steps_of(index, std::max(steps, from.steps)) - steps_of(index, from.steps);
  return (run == from.recipe_steps.end() ? 0 : run->second) + remaining;
}

std::string RecipeCycle::text() const {
  std::vector<std::string> parts;
  for (const FitRecipe& recipe : recipes_) {
    parts.push_back(fmt::format("{}:{}", recipe.name, recipe.steps));
  }
  return fmt::format("{}", fmt::join(parts, ","));
}

}  // namespace fluid
