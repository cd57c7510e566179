#pragma once

#include <cstdint>
#include <string>

namespace fluid {

/// Options for the checkpoints of a training run. By default a checkpoint is written after each
/// epoch and at the end of training. CheckpointDirectory describes the files.
struct CheckpointingOptions {
  std::string directory = {};  ///< where checkpoints are written; empty: no checkpoints
  int64_t every_steps = 0;     ///< save after every N steps instead of after each epoch; 0: off
  double every_minutes = 0;    ///< save every N minutes instead of after each epoch; 0: off
  int64_t keep = 3;  ///< keep the N newest checkpoints, and the checkpoint of the best epoch
  /// Resumes training from the newest checkpoint in `directory`, if there is one. If `resume` is
  /// false, a directory that already holds checkpoints is rejected with a UserError.
  bool resume = false;
};

}  // namespace fluid
