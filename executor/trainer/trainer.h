#pragma once

#include <functional>
#include <memory>
#include <string>

#include "executor/executor.h"
#include "executor/trainer/checkpointing_options.h"
#include "executor/trainer/fit_options.h"

namespace fluid {

/// Trains, evaluates and applies a program: the loop over epochs and batches, with validation,
/// early stopping, checkpoints and several ranks.
///
///   fl::Trainer trainer(net, fl::cpu(), {.seed = 1}, {.directory = "run", .resume = true});
///   trainer.fit(train, {.epochs = 20, .validation = &test, .patience = 3});
///   trainer.save("mnist.safetensors");
///
/// With several ranks (ExecutorOptions::world) every call is a collective: all ranks make the same
/// calls in the same order, and each Reader gives its rank's share of every batch. One thread at a
/// time may use a Trainer.
class Trainer {
 public:
  /// Throws as Executor's constructor does, and UserError for a directory that holds the
  /// checkpoints of another run. With `checkpoints.resume` it reads the newest checkpoint, which
  /// fit() restores.
  Trainer(const Program& program, Place place, ExecutorOptions options = {},
          const CheckpointingOptions& checkpoints = {});
  ~Trainer();
  Trainer(Trainer&&) noexcept;

  /// Trains. A second call goes on with more epochs. Throws UserError for options that do not fit
  /// the program, when training diverges (the loss is nan, or gradients overflow with the least
  /// loss scale), and at the end for parameters that are not finite. Throws DeviceError, with the
  /// step's number, when a library fails or a rank is lost.
  History fit(Reader& train, const FitOptions& options = {});
  /// Asks fit() to return after the current step: for callbacks. One rank's call stops all ranks.
  void stop();

  /// The scalar outputs over one epoch of `data`, in inference mode: metrics exactly, others as
  /// means weighted by the samples of each batch.
  NamedScalars evaluate(Reader& data);
  /// The outputs for the samples of one epoch of `data`, in their order, in inference mode: a
  /// column an output. Outputs without a dimension of samples are left out, and outputs that need a
  /// feed that `data` lacks. Each rank gets the rows of its own share. Throws UserError when no
  /// output is left.
  Dataset predict(Reader& data);

  /// Writes the parameters on rank 0, as Executor::save() does.
  void save(const std::string& path);
  /// Reads the parameters on rank 0, as Executor::load() does. A checkpoint that fit() resumes
  /// replaces them.
  void load(const std::string& path, ParamsLayout layout = ParamsLayout::unsaid);

  /// Whether fit() will resume a checkpoint.
  bool resumes() const;
  /// The checkpoint that fit() resumes; empty when there is none, and on other ranks than 0.
  std::string resumed_path() const;
  Executor& executor();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// Throws the UserError that Trainer::fit() would throw for these options, without compiling.
void check_fit_options(const Program& program, const FitOptions& options);

}  // namespace fluid
