#pragma once

#include <optional>
#include <string>

#include "executor/fluidrun/setting_flags.h"
#include "frontend/program.h"

namespace fluid {

/// Values of the flags that choose a learning rate schedule. Each setting of a schedule has a flag:
/// --schedule-steps sets `steps`. The flags of the warm-up have no prefix: --warmup.
struct ScheduleFlags {
  std::string name;  ///< --schedule; empty: the program's schedule
  SettingFlags settings;
  /// The flags as on the command line, for error messages; empty: no flag is given.
  std::string command_line_text() const;
};
void add_schedule_flags(CLI::App& command, ScheduleFlags& flags);

/// Replaces the schedule of the program's recipe, or changes its settings, as the flags specify.
/// `updates`: number of updates of the training run, the default of setting `steps`; nullopt:
/// unknown. `recipe`: the name of the recipe; empty: the only recipe. Throws UserError if a flag is
/// invalid for the program or schedule, or if the schedule needs `updates` but `updates` is
/// unknown. The error message names the flag.
void set_schedule(Program& program, const ScheduleFlags& flags, std::optional<int64_t> updates,
                  const std::string& recipe = "");

}  // namespace fluid
