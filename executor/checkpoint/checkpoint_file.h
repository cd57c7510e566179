#pragma once

#include <string>

#include "executor/checkpoint/checkpoint.h"

namespace fluid {

/// Writes the files of a checkpoint into the directory `path`, each flushed to the disk. Throws
/// UserError as AtomicFile does.
void write_checkpoint(const std::string& path, const Snapshot& snapshot, const TrainingState& state,
                      bool best);

/// A loop's state as text, and back: for other processes.
std::string text_of(const TrainingState& state);
TrainingState training_state_in(const std::string& text);

}  // namespace fluid
