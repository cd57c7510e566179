#include "executor/trainer/plateau_schedules.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "executor/trainer/best_epoch.h"
#include "ir/error.h"
#include "ops/optim/plateau.h"
#include "ops/optim/recipes.h"
#include "passes/metrics.h"
#include "passes/select_recipe.h"

namespace fluid {
namespace {

/// Whether a recipe of `cycle` computes output `name` in its training steps.
bool computes(const ir::Graph& graph, const RecipeCycle& cycle, const std::string& name) {
  if (recipes_of(graph).size() == 1) return true;
  return std::ranges::any_of(cycle.recipes(), [&](const FitRecipe& recipe) {
    const std::vector<std::string> outputs =
        recipe_outputs(graph, recipe_named(graph, recipe.name));
    return std::ranges::find(outputs, name) != outputs.end();
  });
}

}  // namespace

PlateauSchedules::PlateauSchedules(const Program& program, const RecipeCycle& cycle, bool validates)
    : validates_(validates) {
  const ir::Graph& graph = program.ir().main();
  for (const FitRecipe& recipe : cycle.recipes()) {
    const std::optional<PlateauRule> rule = plateau_rule(recipe_named(graph, recipe.name).attrs);
    if (!rule) continue;
    const std::string& metric = rule->metric.empty() ? recipe.loss : rule->metric;
    if (metric.empty()) {
      throw UserError("the schedule 'plateau' monitors the loss, which is not an output");
    }
    check_scalar_output(program, metric, "the schedule 'plateau'");
    if (!validates && !computes(graph, cycle, metric)) {
      throw UserError(
          fmt::format("the schedule 'plateau' monitors '{}', which no training step "
                      "computes: it needs validation data",
                      metric));
    }
    const auto output = std::ranges::find(graph.outputs, metric, &ir::Output::name);
    if (!rule->maximizes && is_larger_better(output->value)) {
      throw UserError("the schedule 'plateau' monitors '" + metric +
                      "', whose larger values are better: set Plateau::mode to max");
    }
    plateau_recipes_.push_back({recipe.name, metric, rule->maximizes});
  }
}

std::vector<std::string> PlateauSchedules::update(const EpochEvent& epoch,
                                                  Executor& executor) const {
  std::vector<std::string> messages;
  const NamedScalars& values = validates_ ? epoch.validation : epoch.training;
  for (const auto& [recipe, metric, maximizes] : plateau_recipes_) {
    const auto value = std::ranges::find(values, metric, &std::pair<std::string, double>::first);
    if (value == values.end() || !executor.reduce_on_plateau(value->second, recipe)) continue;
    messages.push_back(
        fmt::format("{}{} has reached a plateau: the learning rate falls after epoch {} (mode {})",
                    validates_ ? "val_" : "", metric, epoch.epoch, maximizes ? "max" : "min"));
  }
  return messages;
}

}  // namespace fluid
