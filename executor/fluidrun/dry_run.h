#pragma once

#include "executor/options/world.h"
#include "executor/trainer/fit_options.h"
#include "executor/trainer/trainer.h"
#include "frontend/readers/reader.h"

namespace fluid {

/// Collective. Prepares the steps of `train` and `options.validation`, and times a few steps of
/// each batch size. Prints step times, memory use, and the predicted time of an epoch and of the
/// training to stdout. `options`: the options for training; no callback except on_begin is
/// called. Changes the trainer's variables. Writes no file.
void dry_run(const Program& program, Trainer& trainer, FitOptions options, Reader& train,
             const World& world);

}  // namespace fluid
