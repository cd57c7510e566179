#pragma once

#include <string>

#include "executor/checkpoint/checkpoint.h"

namespace fluid {

/// Writes a checkpoint's files into the directory `path` and fsyncs them. Throws UserError as
/// AtomicFile does.
void write_checkpoint(const std::string& path, const Snapshot& snapshot, const TrainingState& state,
                      bool best);

/// Serialises a training state, for other ranks; training_state_in() parses it.
std::string text_of(const TrainingState& state);
TrainingState training_state_in(const std::string& text);

}  // namespace fluid
