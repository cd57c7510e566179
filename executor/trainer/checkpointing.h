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

/// Restores a training run from its newest checkpoint, and decides when to write checkpoints. Only
/// rank 0 reads and writes files; rank 0 broadcasts the training state to the other ranks.
class Checkpointing {
 public:
  /// On rank 0, reads the newest checkpoint if `options.resume` is set or the job was restarted.
  /// Throws UserError for invalid options, and when the directory holds checkpoints but the run
  /// does not resume.
  Checkpointing(const CheckpointingOptions& options, const World& world);

  bool enabled() const { return enabled_; }
  /// Collective. Broadcasts the resumed training state from rank 0.
  void broadcast_state(ProcessGroup& group);
  /// The resumed training state, valid after broadcast_state(); null for a new run.
  const TrainingState* resumed_state() const { return state_ ? &*state_ : nullptr; }
  /// The path of the resumed checkpoint on rank 0; "" on other ranks and for a new run.
  std::string resumed_path() const { return resumed_ ? resumed_->path : ""; }
  /// The value of option `name` in the snapshot of the resumed checkpoint; nullopt for a new run,
  /// and on ranks other than 0.
  std::optional<std::string> resumed_option(const std::string& name) const;
  /// The tuning choices (Snapshot::tuning_record) of the resumed checkpoint; empty for a new run,
  /// and on ranks other than 0.
  std::map<std::string, std::string> resumed_tuning_choices() const;
  /// The constructor's messages for the user; empty on ranks other than 0.
  const std::vector<std::string>& notices() const { return notices_; }
  /// Collective. Restores the executor from the resumed checkpoint. `options`: the training loop's
  /// options that affect results. `epochs`: FitOptions::epochs. Returns messages for the user: the
  /// step and epoch at which training continues, and the options that differ from the checkpoint's.
  std::vector<std::string> restore(Executor& executor,
                                   const std::map<std::string, std::string>& options,
                                   int64_t epochs);

  /// Whether this rank requests a checkpoint after `steps` training steps: true if a checkpoint is
  /// due according to every_steps or every_minutes, or if `requested` is true.
  bool rank_requests_checkpoint(int64_t steps, bool requested) const;
  /// Marks a checkpoint as due until save() writes it. All ranks must call set_due() after the same
  /// step.
  void set_due() { due_ = enabled_; }
  bool due() const { return due_; }
  bool due_at_epoch_end() const { return enabled_ && (saves_each_epoch_ || due_); }
  /// Collective. Writes a checkpoint, unless the last checkpoint has the same step and epoch. When
  /// writing fails, rank 0 calls `on_failure` and then throws the error. `best`: whether to mark
  /// the checkpoint as the checkpoint of the best epoch.
  void save(Executor& executor, const TrainingState& state, bool best,
            const std::function<void(const UserError&)>& on_failure);

 private:
  using Clock = std::chrono::steady_clock;

  CheckpointingOptions options_;
  bool enabled_;
  bool saves_each_epoch_;
  bool is_rank_0_;
  std::unique_ptr<CheckpointDirectory>
      directory_;  ///< null if checkpoints are off, and on ranks other than 0
  /// The checkpoint that the run resumes; nullopt for a new run, and on ranks other than 0.
  std::optional<Checkpoint> resumed_;
  /// Training state of the resumed checkpoint, set on all ranks; nullopt for a new run.
  std::optional<TrainingState> state_;
  std::vector<std::string> notices_;
  bool due_ = false;
  Clock::time_point last_save_time_ = Clock::now();
  std::pair<int64_t, int64_t> last_saved_ = {0, -1};  ///< (steps, epochs) at the last checkpoint
};

}  // namespace fluid
