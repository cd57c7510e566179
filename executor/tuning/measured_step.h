#pragma once

#include <cstdint>
#include <vector>

#include "executor/options/executor_options.h"
#include "executor/tuning/timeline.h"
#include "frontend/program.h"

namespace fluid {

/// Returns the bytes and ring passes of op `collective` in a final program.
CollectiveTraffic traffic_of_collective(const ir::Op& collective);

struct MeasuredStep {
  /// Calls with median times. The first entry is the time outside of calls, such as copying feeds.
  std::vector<TimedCall> calls;
  int64_t runs = 0;  ///< number of timed runs
};

/// Times training steps on this machine, one for each of `options`. Each step runs the program of
/// one rank in the world of the step's options, with the kernels, call order and memory of the
/// rank. Collectives do nothing.
///
/// The steps run alternately, so that other load on the machine affects all steps. Float feeds are
/// noise, integer feeds are 0. After compilation, takes about 1 s per step. Each step runs at least
/// 5 and at most 100 times. Throws UserError as Executor does if the memory for all steps exceeds
/// the limit.
std::vector<MeasuredStep> measure_steps(const Program& program,
                                        const std::vector<ExecutorOptions>& options);

}  // namespace fluid
