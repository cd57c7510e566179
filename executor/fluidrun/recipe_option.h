#pragma once

#include <optional>
#include <string>
#include <vector>

#include "executor/fluidrun/optimizer_flags.h"
#include "executor/fluidrun/schedule_flags.h"
#include "executor/fluidrun/update_flags.h"

namespace fluid {

/// Adds --recipe-option, which changes one of several recipes.
void add_recipe_option_flag(CLI::App& command, std::vector<std::string>& texts);

/// A value of --recipe-option, such as "d:lr=1e-4,optimizer=adam": the name of a recipe, or an
/// unambiguous prefix of it, and flags of the optimizer, clipping, averages and the schedule,
/// without their dashes. Error messages begin with the option.
class RecipeOption {
 public:
  /// Throws UserError for an unknown recipe or flag, and for a wrong value.
  RecipeOption(const Program& program, const std::string& text);

  const std::string& recipe() const { return recipe_; }
  const std::string& given() const { return given_; }  ///< the option, for error messages

  /// Like fluid::set_optimizer() and set_update(), for the recipe.
  void set_optimizer(Program& program) const;
  /// Like fluid::set_schedule(), for the recipe. `updates`: number of updates of the recipe.
  void set_schedule(Program& program, std::optional<int64_t> updates) const;

 private:
  std::string given_, recipe_;
  OptimizerFlags optimizer_;
  UpdateFlags update_;
  ScheduleFlags schedule_;
};

}  // namespace fluid
