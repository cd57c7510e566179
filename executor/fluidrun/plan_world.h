#pragma once

#include <optional>

#include "executor/fluidrun/flags.h"
#include "executor/fluidrun/planned_step.h"

namespace fluid {

/// The world of a planned step, and its network.
struct PlanWorldFlags {
  std::optional<int64_t> world;
  std::optional<double> bandwidth;  ///< of a rank, in GB/s
  std::optional<double> latency;    ///< of a message, in microseconds
  CollectiveFlags collectives;
};
void add_plan_world_flags(CLI::App& command, PlanWorldFlags& flags);

/// Throws UserError for flags that exclude each other or do not fit the place. `other_target`:
/// --target is given.
void check_plan_world(const PlanWorldFlags& flags, const Program& program, Mode mode, Place place,
                      bool other_target);

/// Prints the collectives of a step planned for `options.world` and `options.batch`. Given a
/// bandwidth, times the step on this machine and prints its predicted overlap and scaling.
void print_world(const PlanWorldFlags& flags, const Program& program,
                 const ExecutorOptions& options, const PlannedStep& step);

}  // namespace fluid
