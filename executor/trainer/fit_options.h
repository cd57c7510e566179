#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "executor/checkpoint/checkpoint.h"
#include "executor/session/outputs.h"
#include "executor/trainer/running_means.h"
#include "frontend/readers/reader.h"

namespace fluid {

/// The progress of the training run when fit() starts. The counts are 0 in a new run.
struct BeginEvent {
  int64_t steps = 0;   ///< training steps run so far
  int64_t epochs = 0;  ///< completed epochs
};

/// A training step whose outputs have been read.
struct StepEvent {
  std::string recipe = {};    ///< name of the recipe; empty for the only recipe, if it has no name
  int64_t epoch = 0;          ///< epoch number, counted from 1
  int64_t step = 0;           ///< step number, counted from 1 over all epochs
  int64_t step_in_epoch = 0;  ///< step number, counted from 1 in each epoch
  int64_t samples = 0;        ///< number of samples in the global batch
  double learning_rate = 0;
  /// The loss scaling state after this step; absent if the loss is not scaled.
  std::optional<LossScaling> loss_scaling;
  bool skipped = false;  ///< whether the update was skipped because gradients overflowed
  /// Milliseconds since the start of this step or the previous StepEvent, whichever is later.
  double ms = 0;
  const OutputViews& outputs;
  const RunningMeans& means;  ///< means of the scalar outputs over the epoch so far
};

/// An epoch that has ended, or was cut off because training stopped.
struct EpochEvent {
  int64_t epoch = 0;        ///< epoch number, counted from 1
  int64_t epochs = 0;       ///< FitOptions::epochs, the last epoch to train
  int64_t steps = 0;        ///< training steps so far, over all epochs
  NamedScalars training;    ///< means of scalar outputs over the training samples
  NamedScalars validation;  ///< means of scalar outputs over the validation samples
  bool complete = true;     ///< false: training stopped before the end of the epoch
  bool best = false;        ///< whether this is the best epoch so far
  double ms_per_step = 0;   ///< mean milliseconds per training step, excluding validation
  double seconds = 0;       ///< duration of the epoch, including validation
  int rank = 0;             ///< rank of this process
};

/// On rank 0, prints one line to stdout: "epoch 3/20  loss 0.1234  val_loss 0.2345 best".
void print_epoch(const EpochEvent& epoch);

/// Writes `text` and a newline to stderr.
void print_notice(const std::string& text);

/// Consecutive steps of a recipe in the cycle of FitOptions::recipes.
struct RecipeSteps {
  std::string recipe;  ///< MinimizeOptions::name
  int64_t steps = 1;
};

/// Options of Trainer::fit(). All ranks must pass equal options.
struct FitOptions {
  /// For a program of several recipes: the cycle of steps that training repeats, such as
  /// {{"discriminator", 2}, {"generator", 1}}. Each step takes the next batch, so the recipes share
  /// one pass over the data per epoch. A cycle may span two epochs. Empty: the only recipe of the
  /// program.
  std::vector<RecipeSteps> recipes = {};
  int64_t epochs = 1;  ///< total number of epochs, including those before a resume
  /// Maximum total number of training steps, including those before a resume; 0: no limit.
  int64_t max_steps = 0;
  /// Reader of the validation data, which is evaluated after each epoch; null: no validation. The
  /// reader must outlive fit().
  Reader* validation = nullptr;
  /// The scalar output on the validation data that selects the best epoch, and whether its maximum
  /// or minimum is best: "accuracy:max", "loss:min". Without max or min, the maximum of an accuracy
  /// and of other metrics whose larger values are better, else the minimum. Empty: the loss that
  /// training minimizes.
  std::string best = {};
  /// Early stopping: fit() returns after this number of epochs without a new best epoch. Absent: no
  /// early stopping.
  std::optional<int64_t> patience = {};
  /// Whether validation, `save` and `save_best` use the averages of the parameters
  /// (MinimizeOptions::ema or swa).
  bool averages = false;
  std::string save = {};       ///< file for the final parameters; empty: none
  std::string save_best = {};  ///< file for the parameters of the best epoch; empty: none
  /// Handles signals during fit(). SIGINT, SIGTERM and SIGHUP stop training after the current step;
  /// a second signal ends the process. SIGUSR1 saves the parameters to `save` and writes a
  /// checkpoint.
  bool handle_signals = false;
  /// Names and values to store in checkpoints, such as {{"data", "digits"}}. A resumed run calls
  /// `notice` if its labels differ from the checkpoint's.
  std::map<std::string, std::string> labels = {};

  // Callbacks run on every rank, on the thread that called fit(). An exception from a callback ends
  // fit().

  /// Called once, after steps are compiled and a resumed checkpoint is restored.
  std::function<void(const BeginEvent&)> on_begin = {};
  std::function<void(int64_t epoch)> on_epoch_begin = {};  ///< `epoch` is counted from 1
  /// Called before each step, with its number and the samples of this rank. The batch is valid
  /// during the call.
  std::function<void(int64_t step, const Batch&)> on_batch = {};
  std::function<void(const StepEvent&)> on_step = {};
  std::function<void(const EpochEvent&)> on_epoch = {};
  std::function<void()> on_end = {};  ///< called after the final parameters are saved
  /// Receives messages for the user on rank 0: which files were written or could not be written,
  /// and why training stopped.
  std::function<void(const std::string&)> notice = print_notice;
};

/// The reason why Trainer::fit() returned. stopped: by a signal or Trainer::stop().
enum class StopReason : uint8_t { epochs, max_steps, patience, stopped };

/// The result of Trainer::fit().
struct History {
  std::vector<EpochEvent> epochs;  ///< epochs that this fit() ran; the last may be incomplete
  int64_t steps = 0;               ///< total training steps, including those before a resume
  int64_t samples = 0;             ///< training samples of this fit(), summed over the ranks
  double training_seconds = 0;     ///< duration of the training steps of this fit()
  double seconds = 0;              ///< duration of the epochs, including validation
  std::optional<TrainingState::BestValue> best;  ///< the best epoch and its validation value
  StopReason reason = StopReason::epochs;
};

}  // namespace fluid
