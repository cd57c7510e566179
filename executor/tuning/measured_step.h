#pragma once

#include <cstdint>
#include <vector>

#include "executor/options/executor_options.h"
#include "executor/tuning/timeline.h"
#include "frontend/program.h"

namespace fluid {

/// What an exchange op of a final program sends.
Message message_of(const ir::Op& exchange);

struct MeasuredStep {
  std::vector<TimedCall>
      calls;         ///< the first stands for all between kernels, such as copying feeds
  int64_t runs = 0;  ///< of which the times are medians
};

/// Times training steps on this machine, each of its options' `batch` samples as one process of
/// their world takes it, with the kernels, the order and the memory that it would have there. The
/// others are not needed: what is handed to them is noted, and not sent. The steps take turns, so
/// that what disturbs one disturbs all. Inputs are noise, and 0 for integers. Takes a second for
/// each, or 5 runs if those take longer, besides compiling. Throws UserError as Executor does,
/// where the machine has not the memory for all at once.
std::vector<MeasuredStep> measure_steps(const Program& program,
                                        const std::vector<ExecutorOptions>& options);

}  // namespace fluid
