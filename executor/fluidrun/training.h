#pragma once

#include "executor/fluidrun/train_flags.h"

namespace fluid {

/// Trains as the flags say. Returns the exit code: 0, or 128 + the number of the signal that
/// stopped training.
int train(const TrainFlags& flags);

}  // namespace fluid
