#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "executor/checkpoint/checkpoint.h"
#include "executor/executor.h"
#include "executor/trainer/checkpointing_options.h"
#include "frontend/readers/reader.h"

namespace fluid {

/// The checkpoints of a training run: the one that it resumes, and when to write one. Rank 0 alone
/// reads and writes files, and broadcasts what the other ranks need.
class Checkpointing {
 public:
  /// Reads the newest checkpoint on rank 0, with `resume` or after a restart of the job. Throws
  /// UserError for options without a directory, and for the directory of another run.
  Checkpointing(const CheckpointingOptions& options, const World& world);

  bool on() const { return on_; }
  /// Collective. Broadcasts the state of the resumed run from rank 0.
  void broadcast_state(ProcessGroup& group);
  /// The state of the resumed run, after broadcast_state(); null for a new run.
  const TrainingState* resumed() const { return state_ ? &*state_ : nullptr; }
  /// The path of the resumed checkpoint, on rank 0.
  std::string path() const { return from_ ? from_->path : ""; }
  /// An option of the resumed run, on rank 0.
  std::optional<std::string> option(const std::string& name) const;
  /// The choices by timing of the resumed run, on rank 0.
  std::map<std::string, std::string> decisions() const;
  /// Messages of the constructor for the user, on rank 0.
  const std::vector<std::string>& notices() const { return notices_; }
  /// Collective. Restores the executor. `options`: the options of the training loop that change
  /// results. Returns messages for the user: the place, and the options that differ.
  std::vector<std::string> restore(Executor& executor,
                                   const std::map<std::string, std::string>& options,
                                   int64_t epochs);

  /// Whether this rank wants a checkpoint after `steps` steps: because it is time, or `requested`.
  bool wants(int64_t steps, bool requested) const;
  /// All ranks agreed to write one: due() until save().
  void set_due() { due_ = on(); }
  bool due() const { return due_; }
  bool due_at_epoch() const { return on() && (each_epoch_ || due_); }
  /// Collective. Writes a checkpoint, unless this state has one already. `on_failure` runs on rank
  /// 0 before the error of a checkpoint that could not be written is thrown.
  void save(Executor& executor, const TrainingState& state, bool best,
            const std::function<void(const UserError&)>& on_failure);

 private:
  using Clock = std::chrono::steady_clock;

  CheckpointingOptions options_;
  bool on_;
  bool each_epoch_;
  bool is_rank_0_;
  std::unique_ptr<Checkpoints> checkpoints_;  ///< on rank 0
  std::optional<Checkpoint> from_;            ///< on rank 0
  std::optional<TrainingState> state_;        ///< of `from_`, on every rank
  std::vector<std::string> notices_;
  bool due_ = false;
  Clock::time_point written_ = Clock::now();
  std::pair<int64_t, int64_t> last_ = {0, -1};  ///< steps and epochs of the last checkpoint
};

}  // namespace fluid
