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
#include "executor/trainer/running_means.h"
#include "frontend/program.h"
#include "frontend/readers/reader.h"
#include "ir/stopwatch.h"

namespace fluid {

/// How far training is; fit() advances it, and a checkpoint holds it.
struct Progression {
  int64_t steps = 0;     ///< started
  int64_t epochs = 0;    ///< completed
  int64_t in_epoch = 0;  ///< samples of the next epoch that were used
  RunningMeans means = {};
  std::optional<TrainingState::Best> best = {};
  std::string best_criterion = {};
  bool stop_called = false;
};

/// Requests to stop, to save and to write a checkpoint, which ranks add up after each step.
using FitRequests = std::array<double, 3>;

/// One call of Trainer::fit(): the loop over epochs and steps.
class FitLoop {
 public:
  /// Prepares the steps and restores a checkpoint, once. Throws UserError for options that do not
  /// fit the program. `loss`: the output that training minimizes, or empty; `lr`: its recorded
  /// learning rate.
  FitLoop(const Program& program, Executor& executor, Checkpointing& checkpointing,
          Progression& progression, Reader& train, const FitOptions& options,
          const std::string& loss, double lr);

  History run();

 private:
  /// A step that was started, and whose outputs have not been read.
  struct StartedStep {
    int64_t epoch = 0, number = 0, in_epoch = 0, samples = 0;
    OutputViews outputs;
    const Batch* batch = nullptr;  ///< valid until the reader's next batch
  };

  void take_checkpoint();
  void prepare();
  void restore();
  void check_equal_options();
  void run_epochs();
  EpochEvent run_epoch(int64_t epoch);
  void run_steps(int64_t epoch);
  /// Reads the outputs of the step started last, unless they have been read.
  void read_outputs();
  template <class Next>
  auto read_outputs_on_error(Next next);
  void explain_overflow(const StartedStep& step, bool skipped);
  /// Collective. Merges the requests of all ranks to stop, to save and to write a checkpoint, so
  /// that all of them act after the same step. Returns whether to save.
  bool poll_requests();
  void close_epoch(const EpochEvent& epoch);
  void reduce_on_plateau(const EpochEvent& epoch);
  void checkpoint(bool best = false);
  void finish();
  void report_best();
  void notice(const std::string& text) const;

  bool is_rank_0() const { return world_.rank == 0; }
  /// On a GPU a step's outputs are read once the next step has started.
  bool reads_late() const;
  bool epoch_ended(int64_t epoch) const;
  bool finished() const;
  std::map<std::string, std::string> result_options() const;
  TrainingState state() const;
  StopReason reason() const;

  Executor& executor_;
  ProcessGroup& group_;
  const World& world_;
  Checkpointing& checkpointing_;
  Progression& at_;
  Reader& train_;
  const FitOptions& options_;
  std::string loss_;
  double lr_;
  std::vector<std::string> output_names_;
  BestEpoch best_;
  ParameterSaves saves_;
  std::optional<Divergence> divergence_;
  std::optional<StartedStep> unread_;
  Stopwatch since_;        ///< the last read outputs, or the start of the first step after them
  int64_t done_ = 0;       ///< the last step whose outputs were read
  bool stopping_ = false;  ///< a signal or stop(), on any rank
  History history_;
};

}  // namespace fluid
