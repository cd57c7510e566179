#pragma once

#include <optional>

#include "executor/fluidrun/planned_step.h"
#include "executor/fluidrun/world_flags.h"

namespace fluid {

/// For whom a step is planned: so many processes that train together.
struct PlanWorldFlags {
  std::optional<int64_t> world;
  std::optional<double> bandwidth;  ///< GB/s that a process sends
  std::optional<double> latency;    ///< microseconds of a message
  ExchangeFlags exchanges;
};
void add_plan_world_flags(CLI::App& command, PlanWorldFlags& flags);

/// Throws UserError for flags that do not go together, or not with the place; `other_target`: with
/// --target.
void check_plan_world(const PlanWorldFlags& flags, const Program& program, Mode mode, Place place,
                      bool other_target);

/// Says what a step as planned for `options.world` and `options.batch` sends, and, given a
/// bandwidth, times it on this machine and says what will become of it.
void print_world(const PlanWorldFlags& flags, const Program& program,
                 const ExecutorOptions& options, const PlannedStep& step);

}  // namespace fluid
