#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "executor/checkpoint/checkpoint.h"
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

/// The checkpoints of a training run: what it goes on from, and when it writes one. Of several
/// processes rank 0 alone reads and writes them, and tells the others what they need.
class Checkpointing {
 public:
  /// Reads what --resume goes on from. Throws UserError for flags that do not go together, and for
  /// a directory with the checkpoints of another run.
  /// `leads`: this process reads and writes, and says what it does.
  /// `restarted`: processes of this job were started again, and go on as with --resume.
  Checkpointing(const CheckpointFlags& flags, bool leads, bool restarted);

  bool on() const { return on_; }
  /// Tells all ranks where rank 0 goes on from: a call of all.
  void share(Executor& executor);
  const TrainingState* from() const { return state_ ? &*state_ : nullptr; }  ///< null: a new run
  /// An option of the run that it goes on from, where this process has read it.
  std::optional<std::string> option(const std::string& name) const;
  /// What was chosen by timing in that run, where this process has read it.
  std::map<std::string, std::string> decisions() const;
  /// Lets the data go on where that one stopped.
  void seek(Reader& reader) const;
  /// The executor goes on from there too, on all ranks; `alone` where there are no others. Says so
  /// on stderr, and which options differ. `epochs`: of the whole training.
  void restore(Executor& executor, const std::map<std::string, std::string>& loop_options,
               int64_t epochs, bool alone);
  /// Names a file of parameters that is not read, because a checkpoint is.
  void pass_over(const std::string& parameters) const;

  /// Whether a checkpoint is to be written after this step, as this process sees it: it is time, or
  /// the user `asked` for one.
  bool wants(int64_t steps, bool asked) const;
  /// Notes that one is to be written, as all ranks have agreed; it is until it is written.
  void set_due() { due_ = on(); }
  bool due() const { return due_; }
  bool due_at_epoch() const { return on() && (each_epoch_ || due_); }
  /// Unless this very state has one already: a call of all ranks. Where there can be no checkpoint,
  /// `not_written` sees why first.
  void save(Executor& executor, const TrainingState& state, bool best,
            const std::function<void(const UserError&)>& not_written);

 private:
  using Clock = std::chrono::steady_clock;

  bool on_, leads_;
  std::unique_ptr<Checkpoints> checkpoints_;  ///< of the process that leads
  std::optional<Checkpoint> from_;            ///< the same
  std::optional<TrainingState> state_;        ///< what `from_` holds
  bool each_epoch_ = false;
  int64_t steps_ = 0;   ///< between two checkpoints; 0: not by steps
  double minutes_ = 0;  ///< the same
  bool due_ = false;
  Clock::time_point written_ = Clock::now();
  std::pair<int64_t, int64_t> last_ = {0, -1};  ///< steps and epochs of the last one
};

}  // namespace fluid
