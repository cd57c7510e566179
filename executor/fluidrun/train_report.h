#pragma once

#include <vector>

#include "executor/executor.h"
#include "executor/fluidrun/resident.h"
#include "executor/fluidrun/train_flags.h"
#include "frontend/program.h"
#include "frontend/readers/reader.h"

namespace fluid {

/// A training run before its first step.
struct PreparedTraining {
  const Program& program;
  const Executor& executor;
  const TrainFlags& flags;
  const World& world;
  std::vector<const Reader*> readers;  ///< of the training data, and of what validates
  Resident before;                     ///< what the process held before the program was read
  Resident opened;                     ///< and when the data was open
};

/// Says on stderr what will run: samples, kernels, memory.
void describe(const PreparedTraining& training);

}  // namespace fluid
