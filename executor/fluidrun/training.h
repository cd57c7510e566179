#pragma once

#include <array>

#include "executor/fluidrun/train_flags.h"

namespace fluid {

/// What ranks add up after each step: who was asked to stop, to save, to write a checkpoint.
using Asked = std::array<double, 3>;

/// Trains as the flags say, from opening the program to saving what came of it. Returns the exit
/// code: 0, or 128 + the number of the signal that stopped training.
int train(const TrainFlags& flags);

}  // namespace fluid
