#pragma once

#include <string>

#include "executor/checkpoint/checkpoint.h"

namespace fluid {

/// Name of the file that holds a checkpoint's parameters.
inline constexpr const char* kCheckpointParameters = "parameters.safetensors";

/// Writes a checkpoint's files into the directory `path` and fsyncs them. Throws UserError when a
/// file cannot be written.
void write_checkpoint(const std::string& path, const Snapshot& snapshot, const TrainingState& state,
                      bool best);

/// Serialises a training state to text, to broadcast it to other ranks.
std::string serialize_training_state(const TrainingState& state);
/// Parses the text of serialize_training_state().
TrainingState parse_training_state(const std::string& text);

}  // namespace fluid
