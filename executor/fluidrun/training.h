#pragma once

#include "executor/fluidrun/train_flags.h"

namespace fluid {

/// Trains as the flags say, from opening the program to saving what came of it.
void train(const TrainFlags& flags);

}  // namespace fluid
