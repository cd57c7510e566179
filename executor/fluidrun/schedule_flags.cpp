#include "executor/fluidrun/schedule_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <vector>

#include "executor/fluidrun/help.h"
#include "executor/fluidrun/recipe_flags.h"
#include "ir/error.h"
#include "ops/optim/schedule.h"

namespace fluid {
namespace {

constexpr const char* kSteps = "steps";

std::string attribute_of(const std::string& setting) {
  return std::string(kSchedulePrefix) + setting;
}

std::string schedule_flag_of(const std::string& setting) {
  return setting.find("warmup") != std::string::npos ? flag_of(setting)
                                                     : flag_of(attribute_of(setting));
}

/// The settings of a schedule: the attributes of its op, except `lr`.
std::vector<AttrDef> settings_of(const OpDef& schedule) {
  return {schedule.attrs->begin() + 1, schedule.attrs->end()};
}

const OpDef& schedule_called(const std::string& name) {
  if (const OpDef* def = find_schedule(name)) return *def;
  throw UserError(fmt::format("--schedule {}: there are {}{}", name, join_names(schedule_names()),
                              did_you_mean(name, schedule_names())));
}

/// Sets the schedule of the recipe `train` to `schedule` with its default settings.
void replace_schedule(ir::Op& train, const OpDef& schedule) {
  for (const auto& [name, value] : schedule_settings(train.attrs)) {
    train.attrs.erase(attribute_of(name));
  }
  train.attrs.set("schedule", schedule_name(schedule));
}

void apply_setting_flags(ir::Op& train, const OpDef& schedule, const SettingFlags& flags) {
  const std::vector<AttrDef> settings = settings_of(schedule);
  std::vector<std::string> known;
  for (const AttrDef& a : settings) known.push_back(schedule_flag_of(a.name));
  for (const auto& [setting, flag] : flags) {
    if (!flag.is_set()) continue;
    if (std::ranges::find(known, flag.flag) == known.end()) {
      throw UserError(fmt::format("{}: no setting of {}, which has {}", flag.command_line_text(),
                                  schedule_name(schedule), join_names(known)));
    }
    train.attrs.set(attribute_of(setting), flag.value());
  }
}

void require_settings(const ir::Op& train, const OpDef& schedule) {
  for (const AttrDef& a : settings_of(schedule)) {
    if (a.required && !train.attrs.has(attribute_of(a.name))) {
      throw UserError(
          fmt::format("--schedule {} needs {}", schedule_name(schedule), schedule_flag_of(a.name)));
    }
  }
}

}  // namespace

void add_schedule_flags(CLI::App& command, ScheduleFlags& flags) {
  begin_group(command, kScheduleGroup);
  command
      .add_option("--schedule", flags.name,
                  "learning rate schedule; replaces the program's. Without --schedule-steps, it "
                  "ends with the training")
      ->type_name(fmt::format("{}", fmt::join(schedule_names(), "|")));
  std::vector<NamedSettings> choices;
  for (const std::string& name : schedule_names()) {
    choices.push_back({name, settings_of(*find_schedule(name))});
  }
  add_setting_flags(command, choices, schedule_flag_of, flags.settings);
}

std::string ScheduleFlags::command_line_text() const {
  std::vector<std::string> texts;
  if (!name.empty()) texts.push_back("--schedule " + name);
  for (const auto& [setting, flag] : settings) {
    if (flag.is_set()) texts.push_back(flag.command_line_text());
  }
  return fmt::format("{}", fmt::join(texts, " "));
}

void set_schedule(Program& program, const ScheduleFlags& flags, std::optional<int64_t> updates,
                  const std::string& recipe) {
  const std::string flag_text = flags.command_line_text();
  ir::Op* train = recipe_to_change(program, flag_text, recipe);
  // The trainer rejects a program without a recipe.
  if (flag_text.empty() || train == nullptr) return;
  if (!flags.name.empty()) {
    replace_schedule(*train, schedule_called(flags.name));
  } else if (train->attrs.get_or("schedule", std::string()).empty()) {
    replace_schedule(*train, schedule_called("constant"));
  }
  const OpDef& schedule = schedule_called(train->attrs.get<std::string>("schedule"));
  apply_setting_flags(*train, schedule, flags.settings);
  const bool has_steps =
      std::ranges::any_of(settings_of(schedule), [](const auto& a) { return a.name == kSteps; });
  if (has_steps && !train->attrs.has(attribute_of(kSteps))) {
    if (!updates) {
      throw UserError(
          fmt::format("{}: the data is a stream, whose number of steps is unknown: give "
                      "--schedule-steps or --max-steps",
                      flag_text));
    }
    train->attrs.set(attribute_of(kSteps), *updates);
  }
  require_settings(*train, schedule);
  check_recipe_settings(*train, flag_text);
}

}  // namespace fluid
