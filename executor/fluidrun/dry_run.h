#pragma once

#include "executor/options/world.h"
#include "executor/trainer/fit_options.h"
#include "executor/trainer/trainer.h"
#include "frontend/readers/reader.h"

namespace fluid {

/// Collective. Prepares the steps of `train` and `options.validation`, and runs a few of each size.
/// Prints to stdout their milliseconds, the memory, and the predicted time of an epoch and of the
/// training. `options`: those of the training; of the callbacks, calls on_begin. Changes the
/// variables of the trainer. Writes no file.
void dry_run(const Program& program, Trainer& trainer, FitOptions options, Reader& train,
             const World& world);

}  // namespace fluid
