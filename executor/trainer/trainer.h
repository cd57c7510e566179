#pragma once

#include <functional>
#include <memory>
#include <string>

#include "executor/executor.h"
#include "executor/trainer/batch_observer.h"
#include "executor/trainer/checkpointing_options.h"
#include "executor/trainer/fit_options.h"

namespace fluid {

/// Trains and evaluates a program and predicts with it. Implements the training loop over epochs
/// and batches, with validation, early stopping, checkpoints and data parallelism.
///
///   fl::Trainer trainer(net, fl::cpu(), {.seed = 1}, {.directory = "run", .resume = true});
///   trainer.fit(train, {.epochs = 20, .validation = &test, .patience = 3});
///   trainer.save("mnist.safetensors");
///
/// With several ranks (DistributedOptions::world) every call is a collective: all ranks make the
/// same calls in the same order, and each Reader returns its rank's shard of every batch. One
/// thread at a time may use a Trainer.
class Trainer {
 public:
  /// Creates the Executor; throws the errors of its constructor. With `checkpoints.resume`, reads
  /// the newest checkpoint; the first fit() restores it. Without `resume`, throws UserError if the
  /// checkpoint directory already holds checkpoints.
  Trainer(const Program& program, Place place, ExecutorOptions options = {},
          const CheckpointingOptions& checkpoints = {});
  ~Trainer();
  Trainer(Trainer&&) noexcept;

  /// Trains up to epoch `options.epochs`. A later call continues where the previous call stopped.
  /// Throws UserError for options that do not fit the program, and for final parameters that are
  /// not finite. Also throws UserError when training diverges: the loss is NaN, or gradients
  /// overflow at the lowest loss scale. Throws DeviceError, with the step number in the message,
  /// when a library fails or a rank is lost.
  History fit(Reader& train, const FitOptions& options = {});
  /// Requests that fit() return after the current step. For use in callbacks. A call on one rank
  /// stops training on all ranks.
  void stop();

  /// Returns the scalar outputs over one epoch of `data`, in inference mode. Metrics are exact;
  /// other scalars are means over the batches, weighted by the number of samples in each batch.
  /// Passes each batch of this rank and its outputs to `on_batch`, if set.
  NamedScalars evaluate(Reader& data, const BatchObserver& on_batch = nullptr);
  /// Runs one epoch of `data` in inference mode. Returns one column per output, with the rows in
  /// the order of the samples. Omits outputs without a batch dimension, and outputs that need a
  /// feed that `data` lacks. Each rank returns the rows of its shards. Throws UserError when no
  /// output remains.
  Dataset predict(Reader& data);

  /// Writes the parameters on rank 0, as Executor::save() does.
  void save(const std::string& path, const SaveOptions& options = {});
  /// Reads the parameters on rank 0, as Executor::load() does, and broadcasts them. If fit()
  /// then resumes a checkpoint, the checkpoint's parameters replace the loaded ones. The report is
  /// empty on ranks other than 0.
  LoadReport load(const std::string& path, const LoadOptions& options = {});

  /// Whether this run resumes a checkpoint.
  bool resumes() const;
  /// The path of the checkpoint that this run resumes; empty for a new run, and on ranks other
  /// than 0.
  std::string resumed_path() const;
  /// The executor that runs the steps, for example to read parameters.
  Executor& executor();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// Checks the options of a later Trainer::fit() without compiling anything. Throws UserError as
/// fit() does.
void check_fit_options(const Program& program, const FitOptions& options);

}  // namespace fluid
