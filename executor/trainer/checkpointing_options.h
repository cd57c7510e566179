#pragma once

#include <cstdint>
#include <string>

namespace fluid {

/// Checkpoints of a training run: see Checkpoints for the files. By default one is written at the
/// end of each epoch, and one at the end of training.
struct CheckpointingOptions {
  std::string directory = {};  ///< empty: no checkpoints
  int64_t every_steps = 0;     ///< instead of each epoch's end
  double every_minutes = 0;    ///< instead of each epoch's end
  int64_t keep = 3;            ///< the newest so many are kept, and the best
  /// Goes on from the newest checkpoint in `directory`; starts anew where there is none. Without it
  /// a directory that holds checkpoints is a UserError.
  bool resume = false;
};

}  // namespace fluid
