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

/// How far training is when fit() begins: more than zero in a resumed run.
struct BeginEvent {
  int64_t steps = 0;
  int64_t epochs = 0;  ///< completed
};

/// A training step whose outputs have been read.
struct StepEvent {
  int64_t epoch = 0;          ///< from 1
  int64_t step = 0;           ///< from 1, over all epochs
  int64_t step_in_epoch = 0;  ///< from 1
  int64_t samples = 0;        ///< of all ranks
  double learning_rate = 0;
  std::optional<LossScaling> loss_scaling;  ///< after the step; absent when the loss is not scaled
  bool skipped = false;                     ///< not applied: its gradients overflowed
  double ms = 0;                            ///< since the step before, or since this one started
  const OutputViews& outputs;
  const RunningMeans& means;  ///< over the steps of the epoch so far
};

/// An epoch, or the part of one that ran before training stopped.
struct EpochEvent {
  int64_t epoch = 0;        ///< from 1
  int64_t epochs = 0;       ///< FitOptions::epochs
  int64_t steps = 0;        ///< over all epochs
  NamedScalars training;    ///< over the training samples
  NamedScalars validation;  ///< over the validation samples, under the outputs' names
  bool complete = true;     ///< all samples were seen
  bool best = false;        ///< the best epoch so far
  double ms_per_step = 0;   ///< mean, validation excluded
  double seconds = 0;       ///< validation included
  int rank = 0;             ///< of this process
};

/// Prints an epoch as a line on stdout, on rank 0: "epoch 3/20  loss 0.1234  val_loss 0.2345 best".
void print_epoch(const EpochEvent& epoch);

/// Writes `text` and a newline to stderr.
void print_notice(const std::string& text);

/// What Trainer::fit() does. All ranks give the same options.
struct FitOptions {
  int64_t epochs = 1;     ///< in all; a resumed run goes on up to this epoch
  int64_t max_steps = 0;  ///< in all; 0: no limit
  /// Evaluated after each epoch. It outlives fit().
  Reader* validation = nullptr;
  /// The output over the validation data that tells the best epoch: "accuracy:max", "loss:min";
  /// empty: the minimized loss.
  std::string best = {};
  std::optional<int64_t> patience = {};  ///< epochs without a better one after which fit() returns
  std::string save = {};                 ///< where the parameters go at the end; empty: nowhere
  std::string save_best = {};  ///< where the parameters of the best epoch go; empty: nowhere
  /// During fit(), SIGINT, SIGTERM and SIGHUP stop training after the current step; a second signal
  /// ends the process. SIGUSR1 writes `save` and a checkpoint.
  bool handle_signals = false;
  /// Text that checkpoints keep: a resumed run whose text differs says so. `{{"data", "digits"}}`.
  std::map<std::string, std::string> labels = {};

  // Callbacks run on every rank, on the thread that called fit(). An exception from one ends fit().
  std::function<void(const BeginEvent&)> on_begin = {};    ///< compiled, checkpoint restored
  std::function<void(int64_t epoch)> on_epoch_begin = {};  ///< from 1
  std::function<void(const StepEvent&)> on_step = {};
  std::function<void(const EpochEvent&)> on_epoch = {};
  std::function<void()> on_end = {};  ///< parameters are saved
  /// Receives messages for the user: files written, files that could not be written, why training
  /// stopped. Called on rank 0.
  std::function<void(const std::string&)> notice = print_notice;
};

/// Why fit() returned.
enum class StopReason : uint8_t { epochs, max_steps, patience, stopped };

/// What fit() did.
struct History {
  std::vector<EpochEvent> epochs;           ///< that this call ran, in part or whole
  int64_t steps = 0;                        ///< those before a checkpoint included
  std::optional<TrainingState::Best> best;  ///< over the validation data
  StopReason reason = StopReason::epochs;
};

}  // namespace fluid
