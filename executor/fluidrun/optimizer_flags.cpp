#include "executor/fluidrun/optimizer_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <vector>

#include "executor/fluidrun/flags.h"
#include "executor/fluidrun/help.h"
#include "executor/fluidrun/recipe_flags.h"
#include "frontend/optimizers.h"
#include "ir/error.h"
#include "ops/optim/optimizer.h"
#include "ops/optim/schedule.h"
#include "ops/table.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

/// Suggestion for the unknown optimizer `name`. If `name` is a bool setting that is off by default,
/// such as "nesterov", suggests an optimizer that has the setting. Otherwise, suggests an optimizer
/// with a similar name.
std::string similar_optimizer(const std::string& name) {
  for (const std::string& optimizer : optimizer_names()) {
    const auto is_switch = [&](const AttrDef& a) {
      const bool* is_on = std::get_if<bool>(&a.fallback);
      return a.name == name && is_on != nullptr && !*is_on;
    };
    if (!std::ranges::any_of(*find_optimizer(optimizer)->attrs, is_switch)) continue;
    return fmt::format(" (did you mean '--optimizer {} {}'?)", optimizer, flag_of(name));
  }
  return did_you_mean(name, optimizer_names());
}

const OpDef& optimizer_called(const std::string& name) {
  if (const OpDef* def = find_optimizer(name)) return *def;
  throw UserError(fmt::format("--optimizer {}: there are {}{}", name, join_names(optimizer_names()),
                              similar_optimizer(name)));
}

/// The scalar output that --optimizer minimizes if the program has no recipe.
Value minimized_output(const Program& program, const OptimizerFlags& flags) {
  const std::string name = flags.output.empty() ? "loss" : flags.output;
  std::vector<std::string> names;
  for (const ir::Output& o : program.ir().main().outputs) {
    names.push_back(o.name);
    if (o.name != name) continue;
    if (o.value.shape().empty() && is_float(o.value.dtype())) return o.value;
    throw UserError(fmt::format("--minimize {}: the output is {}, not a float scalar", name,
                                o.value.type().str()));
  }
  throw UserError(fmt::format(
      "{}: program '{}' has no output '{}' to minimize; --minimize names one of its outputs: {}",
      flags.output.empty() ? "--optimizer" : "--minimize", program.ir().name, name,
      join_names(names)));
}

/// Sets the optimizer of the recipe `train` to `optimizer` with its default settings. If `train` is
/// null, adds a recipe to the program. Returns the recipe.
ir::Op* replace_optimizer(Program& program, ir::Op* train, const OpDef& optimizer,
                          const OptimizerFlags& flags) {
  Attrs recipe = {{"lr", optimizer.optimizer->lr}, {"optimizer", *optimizer.name}};
  if (train == nullptr) {
    minimize(minimized_output(program, flags), recipe, {}, Loc());
    return find_directive(program.ir().main());
  }
  for (const auto& [name, value] : optimizer_settings(train->attrs)) train->attrs.erase(name);
  for (const auto& [name, value] : recipe) train->attrs.set(name, value);
  return train;
}

/// Sets an attribute of the recipe. `command_line_text`: the flag and its value, for error
/// messages.
void set_attribute(ir::Op& train, const std::string& name, const Attr& value,
                   const std::string& command_line_text) {
  const OpDef& optimizer = optimizer_called(train.attrs.get<std::string>("optimizer"));
  std::vector<std::string> known = {"--lr"};
  for (const AttrDef& a : *optimizer.attrs) known.push_back(flag_of(a.name));
  if (std::ranges::find(known, flag_of(name)) == known.end()) {
    throw UserError(fmt::format("{}: no setting of {}, which has {}", command_line_text,
                                *optimizer.name, join_names(known)));
  }
  train.attrs.set(name, value);
  check_recipe_settings(train, command_line_text);
}

/// The optimizer flags on the command line, for error messages.
std::string command_line_text(const OptimizerFlags& flags) {
  std::vector<std::string> texts;
  if (!flags.name.empty()) texts.push_back("--optimizer " + flags.name);
  if (!flags.output.empty()) texts.push_back("--minimize " + flags.output);
  if (flags.lr > 0) texts.push_back(fmt::format("--lr {}", flags.lr));
  for (const auto& [name, flag] : flags.settings) {
    if (flag.is_set()) texts.push_back(flag.command_line_text());
  }
  return fmt::format("{}", fmt::join(texts, " "));
}

}  // namespace

void add_optimizer_flags(CLI::App& command, OptimizerFlags& flags) {
  begin_group(command, kOptimizerGroup);
  command
      .add_option("--optimizer", flags.name,
                  "optimizer with its default settings; replaces the program's")
      ->type_name(fmt::format("{}", fmt::join(optimizer_names(), "|")));
  command
      .add_option("--minimize", flags.output,
                  "output that --optimizer minimizes, for a program that minimizes none (default: "
                  "loss)")
      ->type_name("OUTPUT");
  command.add_option("--lr", flags.lr, "learning rate; replaces the program's")
      ->check(validate_positive)
      ->type_name("NUMBER");
  std::vector<NamedSettings> choices;
  for (const std::string& name : optimizer_names()) {
    choices.push_back({name, *find_optimizer(name)->attrs});
  }
  add_setting_flags(command, choices, flag_of, flags.settings);
}

bool changes_optimizer(const OptimizerFlags& flags) { return !command_line_text(flags).empty(); }

void set_optimizer(Program& program, const OptimizerFlags& flags, const std::string& recipe) {
  ir::Op* train = recipe_to_change(program, command_line_text(flags), recipe);
  if (train != nullptr && !flags.output.empty()) {
    throw UserError(fmt::format("--minimize {}: program '{}' has a loss that it minimizes",
                                flags.output, program.ir().name));
  }
  if (flags.name.empty() && !flags.output.empty()) throw UserError("--minimize needs --optimizer");
  if (!flags.name.empty()) {
    train = replace_optimizer(program, train, optimizer_called(flags.name), flags);
  }
  if (train == nullptr) return;  // the trainer rejects a program without a recipe
  if (flags.lr > 0) set_attribute(*train, "lr", flags.lr, fmt::format("--lr {}", flags.lr));
  for (const auto& [name, flag] : flags.settings) {
    if (flag.is_set()) set_attribute(*train, name, flag.value(), flag.command_line_text());
  }
}

void check_lr_is_used(Program& program, const OptimizerFlags& flags, const std::string& recipe) {
  const ir::Op* train = recipe_to_change(program, "", recipe);
  if (train == nullptr || flags.lr == 0) return;
  if (train->attrs.get_or("schedule", std::string()) != kPiecewiseSchedule) return;
  throw UserError(
      fmt::format("--lr {}: the schedule '{}' replaces the learning rate by its values, which "
                  "--schedule-values sets",
                  flags.lr, kPiecewiseSchedule));
}

}  // namespace fluid
