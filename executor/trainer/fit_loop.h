#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "executor/executor.h"
#include "executor/trainer/best_epoch.h"
#include "executor/trainer/checkpointing.h"
#include "executor/trainer/divergence.h"
#include "executor/trainer/fit_options.h"
#include "executor/trainer/parameter_saves.h"
#include "executor/trainer/plateau_schedules.h"
#include "executor/trainer/recipe_cycle.h"
#include "executor/trainer/running_means.h"
#include "frontend/program.h"
#include "frontend/readers/reader.h"
#include "ir/stopwatch.h"

namespace fluid {

/// The progress of a training run. Advanced by Trainer::fit(), and stored in checkpoints.
struct TrainingProgress {
  int64_t steps = 0;        ///< training steps started
  int64_t epochs = 0;       ///< epochs completed
  ReaderPosition position;  ///< position in the training data
  RunningMeans means;       ///< running means of scalar outputs in the current epoch
  std::optional<TrainingState::BestValue> best = {};
  std::string best_criterion = {};  ///< BestEpoch::criterion() that selected `best`
  int64_t monitored_since = 0;      ///< TrainingState::monitored_since
  std::map<std::string, int64_t> recipe_steps = {};  ///< TrainingState::recipe_steps
  bool stop_called = false;                          ///< whether Trainer::stop() was called
};

/// Three requests, each 0 or 1, in this order: stop training, save the parameters, write a
/// checkpoint. The ranks all-reduce the requests after each step.
using FitRequests = std::array<double, 3>;

/// The loop over epochs and steps of one call of Trainer::fit().
class FitLoop {
 public:
  /// Prepares the steps. The first FitLoop of a Trainer also restores the resumed checkpoint, if
  /// any. Throws UserError for options that do not fit the program.
  FitLoop(const Program& program, Executor& executor, Checkpointing& checkpointing,
          TrainingProgress& progress, Reader& train, const FitOptions& options, RecipeCycle cycle);

  History run();

 private:
  /// A training step that has started but whose outputs have not been read yet.
  struct PendingStep {
    size_t recipe = 0;  ///< index in RecipeCycle::recipes()
    int64_t epoch = 0, number = 0, step_in_epoch = 0, samples = 0;
    OutputViews outputs;
    const Batch* batch = nullptr;  ///< batch of the step; valid until the next Reader::next()
  };

  void restore_progress();
  void resume_best_epoch();
  void record_best_epoch();
  void prepare_steps();
  void prepare_last_batch(const Batch& batch);
  void restore_checkpoint();
  void update_column_table();
  void check_equal_options();
  void run_epochs();
  EpochEvent run_epoch(int64_t epoch);
  void run_steps(int64_t epoch);
  /// Reads the outputs of the pending step, if there is one.
  void read_outputs();
  template <class Next>
  auto read_outputs_on_error(Next next);
  void report_nonfinite_op(const PendingStep& step, bool skipped);
  /// Collective. All-reduces the ranks' FitRequests, so that all ranks stop, save or write a
  /// checkpoint after the same step. Saves the parameters if a rank requests it.
  void handle_requests();
  void finish_epoch(const EpochEvent& epoch);
  void save_checkpoint(bool is_best = false);
  void finish_training();
  void report_loss_scales();
  void report_best_epoch();
  void send_notice(const std::string& text) const;

  bool is_rank_0() const { return world_.rank == 0; }
  /// Whether the outputs of a step are read after the next step has started, so that a GPU does not
  /// wait for the host.
  bool defers_output_reads() const;
  bool epoch_ended(int64_t epoch) const;
  bool should_stop() const;
  std::map<std::string, std::string> result_options() const;
  /// Collective. The state to store in a checkpoint.
  TrainingState training_state() const;
  StopReason stop_reason() const;

  Executor& executor_;
  ProcessGroup& group_;
  const World& world_;
  Checkpointing& checkpointing_;
  TrainingProgress& progress_;
  Reader& train_;
  const FitOptions& options_;
  RecipeCycle cycle_;
  const Program& program_;
  PlateauSchedules plateaus_;
  BestEpoch best_;
  ParameterSaver saves_;
  std::vector<DivergenceCheck> divergence_;  ///< one for each recipe of the cycle
  std::optional<PendingStep> pending_step_;
  /// Stopwatch for StepEvent::ms. Restarted after the outputs of a step are read, and when a step
  /// starts while none is pending.
  Stopwatch step_timer_;
  int64_t last_read_step_ = 0;  ///< number of the last step whose outputs were read
  bool stopping_ = false;       ///< whether a rank received a stop signal or called Trainer::stop()
  History history_;
};

}  // namespace fluid
