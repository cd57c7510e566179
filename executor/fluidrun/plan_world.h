#pragma once

#include <optional>

#include "executor/fluidrun/flags.h"
#include "executor/fluidrun/planned_step.h"

namespace fluid {

/// Flags of `fluidrun plan` that describe the ranks and their network.
struct PlanWorldFlags {
  std::optional<int64_t> world;     ///< number of ranks
  std::optional<double> bandwidth;  ///< network bandwidth of each rank in GB/s
  std::optional<double> latency;    ///< network latency of a message in microseconds
  CollectiveFlags collectives;
};
void add_plan_world_flags(CLI::App& command, PlanWorldFlags& flags);

/// Throws UserError for mutually exclusive flags, and for flags that `place` does not support.
/// `has_target`: whether --target is given.
void check_plan_world_flags(const PlanWorldFlags& flags, const Program& program, Mode mode,
                            Place place, bool has_target);

/// Prints the collectives of a planned step with `options.batch` samples per rank. With
/// --bandwidth, also times the step on this machine, and predicts overlap and scaling.
void print_planned_collectives(const PlanWorldFlags& flags, const Program& program,
                               const ExecutorOptions& options, const PlannedStep& step);

}  // namespace fluid
