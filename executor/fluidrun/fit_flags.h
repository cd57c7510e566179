#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "executor/trainer/checkpointing_options.h"
#include "executor/trainer/fit_options.h"

namespace CLI {
class App;
}

namespace fluid {

/// --best, --patience and --save-best.
struct BestFlags {
  std::string output;  ///< "accuracy:max"; empty: the loss, min
  std::optional<int64_t> patience = {};
  std::string save;
};
void add_best_flags(CLI::App& command, BestFlags& flags);
/// Throws UserError for flags that need validation data, unless there is some.
void set_best(FitOptions& options, const BestFlags& flags, bool validates);

/// --checkpoint-dir, --checkpoint-every, --keep and --resume.
struct CheckpointFlags {
  std::string directory;
  std::string every;  ///< "500" steps, "10min", or empty: at the end of each epoch
  std::optional<int64_t> keep = {};
  bool resume = false;
};
void add_checkpoint_flags(CLI::App& command, CheckpointFlags& flags);
/// Throws UserError for flags that need --checkpoint-dir.
CheckpointingOptions checkpointing_options(const CheckpointFlags& flags);

}  // namespace fluid
