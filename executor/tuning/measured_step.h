#pragma once

#include <cstdint>
#include <vector>

#include "executor/options/executor_options.h"
#include "executor/tuning/timeline.h"
#include "frontend/program.h"

namespace fluid {

/// The message of a collective op in a final program.
Message message_of(const ir::Op& exchange);

struct MeasuredStep {
  std::vector<TimedCall>
      calls;         ///< the first entry is the time outside of kernels, such as copying feeds
  int64_t runs = 0;  ///< number of runs behind the medians
};

/// Times training steps on this machine. Each step is the one of a single rank in its options'
/// world, with that rank's kernels, call order and memory. Collectives send nothing.
///
/// The steps alternate, so that disturbances affect all of them. Float inputs are noise, integer
/// inputs are 0. Takes 1 s per step, or 5 runs if those take longer, besides compiling. Throws
/// UserError as Executor does when memory does not suffice for all steps at once.
std::vector<MeasuredStep> measure_steps(const Program& program,
                                        const std::vector<ExecutorOptions>& options);

}  // namespace fluid
