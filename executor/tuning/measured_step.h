#pragma once

#include <cstdint>
#include <vector>

#include "executor/options/executor_options.h"
#include "executor/tuning/timeline.h"
#include "frontend/program.h"

namespace fluid {

/// Returns the traffic of `collective`, an op of a fully compiled program.
CollectiveTraffic traffic_of_collective(const ir::Op& collective);

struct MeasuredStep {
  /// Calls with their median times. The first entry is the time outside of calls, such as copying
  /// feeds.
  std::vector<TimedCall> calls;
  int64_t runs = 0;  ///< number of timed runs
};

/// Times one training step per element of `options` on this machine. Each step is the compiled
/// program of one rank, for the world size in its options. Collectives are no-ops.
///
/// The runs of all steps are interleaved, so that other load on the machine affects them equally.
/// Float feeds are noise, integer feeds are 0. After compilation, the timing takes about 1 s per
/// step. Each step runs at least 5 and at most 100 times. Throws UserError as Executor does if the
/// memory for all steps exceeds the limit.
std::vector<MeasuredStep> measure_steps(const Program& program,
                                        const std::vector<ExecutorOptions>& options);

}  // namespace fluid
