#pragma once

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
/// With ExecutorOptions::world the calls are collectives: every rank makes them in the same order,
/// and each Reader gives its rank's share of every batch. One thread at a time may use a Trainer.
class Trainer {
 public:
  /// Throws as Executor's constructor does, and UserError for a directory that holds the
  /// checkpoints of another run. With `checkpoints.resume` it reads the newest one, which fit()
  /// restores.
  Trainer(const Program& program, Place place, ExecutorOptions options = {},
          CheckpointingOptions checkpoints = {});
  ~Trainer();
  Trainer(Trainer&&) noexcept;

  /// Trains. A second call goes on with more epochs. Throws UserError for options that do not fit
  /// the program, when training diverges (the loss is nan, or gradients overflow with the least
  /// loss scale), and at the end for parameters that are not finite. Throws DeviceError, with the
  /// step's number, when a library fails or a rank is lost.
  History fit(Reader& train, const FitOptions& options = {});
  /// Asks fit() to return after the current step: for callbacks. One rank's call stops all.
  void stop();

  /// All scalar outputs over the samples of `data`, in inference mode: metrics exactly, others as
  /// means weighted by the samples of each batch.
  NamedFigures evaluate(Reader& data);
  /// The outputs for the samples of `data`, in their order, in inference mode. Outputs without a
  /// dimension of samples are left out. Each rank gets those of its own share.
  Dataset predict(Reader& data);

  /// Writes the parameters on rank 0, as Executor::save() does.
  void save(const std::string& path);
  /// Reads the parameters, as Executor::load() does. A checkpoint that fit() resumes replaces them.
  void load(const std::string& path, ParamsLayout layout = ParamsLayout::unsaid);

  /// The checkpoint that fit() will resume; empty when there is none, and on other ranks than 0.
  std::string resumes_from() const;
  Executor& executor();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fluid
