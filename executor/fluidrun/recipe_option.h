#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "executor/fluidrun/optimizer_flags.h"
#include "executor/fluidrun/schedule_flags.h"
#include "executor/fluidrun/update_flags.h"

namespace fluid {

/// Adds --recipe-option, which changes one of several recipes.
void add_recipe_option_flag(CLI::App& command, std::vector<std::string>& texts);

/// A value of --recipe-option, such as "d:lr=1e-4,optimizer=adam". It consists of the name of a
/// recipe, or an unambiguous prefix, and of flags without their dashes. The flags set the
/// optimizer, clipping, averages and schedule. Error messages begin with the option and its value.
class RecipeOption {
 public:
  /// Throws UserError for an unknown recipe or flag, and for a wrong value.
  RecipeOption(const Program& program, const std::string& text);

  const std::string& recipe() const { return recipe_; }
  /// The option and its value as text, for error messages.
  const std::string& command_line_text() const { return command_line_text_; }

  /// The flags that this option sets, such as "--lr".
  const std::set<std::string>& flags() const { return flags_; }

  /// Throws UserError if this option sets a learning rate, a schedule or averages, which `flag`
  /// excludes.
  void check_sets_no_rate(const char* flag) const;
  /// Applies the optimizer and update flags of this option to the recipe recipe().
  void set_optimizer(Program& program) const;
  /// Applies the schedule flags of this option to the recipe recipe(). `updates`: number of updates
  /// of the recipe; nullopt: unknown.
  void set_schedule(Program& program, std::optional<int64_t> updates) const;

 private:
  std::string command_line_text_, recipe_;
  std::set<std::string> flags_;
  OptimizerFlags optimizer_;
  UpdateFlags update_;
  ScheduleFlags schedule_;
};

/// Parses all values of --recipe-option. Throws UserError if several set the same flag of a recipe.
std::vector<RecipeOption> parse_recipe_options(const Program& program,
                                               const std::vector<std::string>& texts);

}  // namespace fluid
