#pragma once

#include <cstdint>
#include <vector>

#include "executor/fluidrun/memory_report.h"
#include "executor/fluidrun/train_flags.h"
#include "executor/trainer/recipe_cycle.h"
#include "frontend/readers/reader.h"

namespace fluid {

/// A training run before its first step: the arguments of print_training_start().
struct PreparedTraining {
  const Program& program;
  const Executor& executor;
  const TrainFlags& flags;
  const World& world;
  /// Readers of the training data and of the validation data, if any, in this order.
  std::vector<const Reader*> readers;
  ResidentMemory before;  ///< measured before the program was loaded
  ResidentMemory opened;  ///< measured after the training data was opened
};

/// Prints to stderr the number of samples, steps and kernels, the memory, and notes on library
/// rejections, TF32 and AMP.
void print_training_start(const PreparedTraining& t);

/// Prints to stderr which recipes of `cycle` run no step within `steps` training steps, and which
/// averages and lookahead updates of a recipe do not start within its steps. `from`: the state of
/// the training run that this run resumes; all counts are 0 for a new run.
void print_unreached_settings(const Program& program, const RecipeCycle& cycle, int64_t steps,
                              const TrainingState& from);

}  // namespace fluid
