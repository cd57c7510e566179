#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "executor/checkpoint.h"
#include "frontend/readers/reader.h"

namespace CLI {
class App;
}

namespace fluid {

struct CheckpointFlags {
  std::string directory;
  std::string every;  ///< "500" steps, "10min", or empty: at the end of each epoch
  std::optional<int64_t> keep = {};
  bool resume = false;
};
void add_checkpoint_flags(CLI::App& command, CheckpointFlags& flags);

/// The checkpoints of a training run: what it goes on from, and when it writes one.
class Checkpointing {
 public:
  /// Reads what --resume goes on from. Throws UserError for flags that do not go together, and for
  /// a directory with the checkpoints of another run.
  /// `leads`: this process writes them, and says what it does; others only read.
  Checkpointing(const CheckpointFlags& flags, bool leads);

  bool on() const { return checkpoints_ != nullptr; }
  const Checkpoint* from() const { return from_ ? &*from_ : nullptr; }  ///< null: a new run
  /// Lets the data go on where that one stopped.
  void seek(Reader& reader) const;
  /// The executor goes on from there too. Says so on stderr, and which options differ.
  void restore(Executor& executor, const std::map<std::string, std::string>& loop_options);

  /// Whether a checkpoint is to be written after this step: it is time, or the user `asked` for
  /// one. What is due stays so until it is written.
  bool due(int64_t steps, bool asked);
  /// The same where an epoch has ended.
  bool due_at_epoch(int64_t steps) { return on() && (each_epoch_ || due(steps, false)); }
  /// Unless this very state has one already.
  void save(Executor& executor, const TrainingState& state, bool best);

 private:
  using Clock = std::chrono::steady_clock;

  bool leads_;
  std::unique_ptr<Checkpoints> checkpoints_;
  std::optional<Checkpoint> from_;
  bool each_epoch_ = false;
  int64_t steps_ = 0;     ///< between two checkpoints; 0: not by steps
  double minutes_ = 0;    ///< the same
  bool waiting_ = false;  ///< one is due
  Clock::time_point written_ = Clock::now();
  std::pair<int64_t, int64_t> last_ = {0, -1};  ///< steps and epochs of the last one
};

}  // namespace fluid
