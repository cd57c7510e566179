#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "executor/checkpoint/snapshot.h"
#include "executor/device/compile_report.h"
#include "executor/options/executor_options.h"
#include "executor/options/load_options.h"
#include "executor/options/place.h"
#include "executor/options/sample_finder.h"
#include "executor/options/world.h"
#include "executor/places/find_place.h"
#include "executor/profile/profile.h"
#include "executor/session/one_thread.h"
#include "executor/session/outputs.h"
#include "executor/tuning/amp_choice.h"
#include "frontend/program.h"
#include "frontend/readers/column_table.h"
#include "ir/tensor.h"
#include "passes/options.h"

namespace fluid {

class Device;
class ProcessGroup;

/// How Executor::save() writes parameters.
struct SaveOptions {
  /// Merges LoRA adapters: writes each adapted weight w as w + scale * a b, and leaves out a and b.
  /// A program without adapters can load the file. The file's metadata lists the merged adapters.
  bool merge_adapters = false;
};

/// The variables that Executor::broadcast() sends.
enum class VariableSet : uint8_t {
  all,
  buffers,  ///< variables that the forward pass writes: running statistics
};

/// Input tensors by feed name.
using Feeds = std::initializer_list<std::pair<std::string, Tensor>>;

/// The batch sizes for which Executor::prepare() compiles steps, by mode. A size listed twice is
/// compiled once.
struct BatchSizes {
  /// Each size is compiled for every recipe that trains a parameter. If several ranks train sparse
  /// parameters, prepare() assumes that all ranks have equal batch sizes. For any other size of the
  /// global batch, run() compiles a step.
  std::vector<int64_t> train = {};
  std::vector<int64_t> eval = {};
  std::vector<int64_t> predict = {};
  std::vector<std::string> predict_feeds = {};  ///< names of the feeds of predict(); empty: all
  /// For a program with the dimension kLength: each batch size is compiled for each of these
  /// lengths. Empty for other programs.
  std::vector<int64_t> lengths = {};
};

/// Memory of an executor in bytes. The arena contains all tensors of all steps.
struct MemoryUse {
  int64_t total = 0;           ///< size of the arena: state + slots + transient
  int64_t state = 0;           ///< parameters, optimizer state, counters
  int64_t slots = 0;           ///< one or two sets of feed buffers, and two sets of output buffers
  int64_t transient = 0;       ///< temporary tensors; the maximum over all prepared steps
  int64_t resident_bytes = 0;  ///< bytes of the arena whose pages are resident in memory
  /// (owner, bytes) of GPU memory outside the arena, largest first. Each value is measured as a
  /// decrease of the GPU's free memory, so it includes simultaneous allocations of other processes.
  std::vector<std::pair<std::string, int64_t>> memory_outside_arenas = {};
  int64_t pinned_bytes = 0;  ///< pinned host memory; 0 on a CPU
};

/// Runs a program on a place, which is the CPU or one GPU. Compiles a step for each batch size and
/// length, and holds the variables (parameters, buffers, optimizer state). All variables are
/// initialised from the seed on first use.
///
/// Threads: one thread at a time may use an Executor and its outputs. Concurrent calls from several
/// threads throw UserError. To serve from N threads, make N executors from one Program, with
/// `threads` = cores / N and the same `cache_dir`, so that kernels are compiled once. Each executor
/// has its own variables.
///
/// Fork: a call in a child process throws UserError if the process was forked after the first step,
/// or after a GPU was opened.
///
/// Feeds: a column of a batch must have the name, shape and dtype of its `data` op. u8 is converted
/// to any float dtype, and f64 to f32. The attributes `scale`, `mean` and `std` of `data` are
/// applied when a feed is copied. The shapes of the columns give the length (kLength) of a step: at
/// least 1, and equal on all ranks of a training step.
class Executor {
 public:
  /// Throws UserError when the program cannot be trained or run on `place`, or needs more memory
  /// than `memory_limit`.
  Executor(const Program& program, Place place, ExecutorOptions options = {});
  /// Runs on a device that the caller implements (executor/device/device.h), in a single process.
  Executor(const Program& program, std::unique_ptr<Device> device, ExecutorOptions options = {});
  ~Executor();
  Executor(Executor&&) noexcept;

  /// Compiles the steps for the given batch sizes and lengths. Running a prepared step neither
  /// compiles nor allocates.
  void prepare(const BatchSizes& sizes);
  /// Returns a value for BatchSizes::lengths: the length of the sequences in `batch`, or empty for
  /// a program without the dimension kLength. Throws UserError if feeds differ in their length.
  std::vector<int64_t> lengths_of(const Batch& batch) const;

  /// Collective. Broadcasts rank 0's variables to all ranks. The first run() also does this. Call
  /// broadcast() after parameters were set only on rank 0.
  void broadcast(VariableSet variables = VariableSet::all);
  /// The process group of the ranks that run this program, for barriers, broadcasts and
  /// all-reduces.
  ProcessGroup& process_group();

  /// Runs one training step: forward, backward, update. Runs only the forward pass if the program
  /// has no minimize(). Throws UserError for a batch that does not match the program's feeds, and
  /// for data that a kernel rejects (a label out of range). No variable changes after a UserError.
  /// Throws DeviceError when a library fails. On the CPU, its message says whether some variables
  /// were updated.
  ///
  /// On a GPU steps are asynchronous: run() returns once the feeds are copied, and at most two
  /// steps are in flight. An error of step n is thrown, with n in its message, by the first call
  /// that synchronizes with step n: reading the outputs of step n or step n + 1, reading or writing
  /// a variable, save(), prepare(), or run() of step n + 2. When step n rejects its data, the step
  /// in flight after it changes no variable either. Steps with micro-batches, check_finite or
  /// profiling are synchronous. When one rank rejects its data, the other ranks throw DeviceError.
  OutputViews run(const Batch& batch);
  /// Runs one training step of the recipe called `recipe` (MinimizeOptions::name), as run(batch)
  /// does for a program with one recipe:
  ///   exe.run("discriminator", batch)
  /// The step needs the feeds that the recipe's loss reads; `batch` may have more columns. The step
  /// computes the loss, and the outputs that read no other feed, parameter or state. The step also
  /// updates states that the loss reads, such as running statistics, as PyTorch does in training
  /// mode. All ranks must run the same recipe. Throws UserError if there is no such
  /// recipe, and if `recipe` is empty but the program has several recipes.
  OutputViews run(std::string_view recipe, const Batch& batch);
  /// Computes all outputs in inference mode: no dropout, running statistics in batch_norm. Changes
  /// no variable.
  OutputViews eval(const Batch& batch);
  /// Computes, in inference mode, the outputs that depend only on feeds in `batch`. With
  /// strict_shapes, runs the prepared step that computes the most of these outputs. Changes no
  /// variable except caches (frontend/cache.h).
  OutputViews predict(const Batch& batch);
  /// Overloads that take tensors by feed name. The batch size is the extent of the feeds' batch
  /// dimension.
  ///   exe.predict({{"image", tensor}})
  OutputViews run(Feeds feeds);
  OutputViews run(std::string_view recipe, Feeds feeds);
  OutputViews eval(Feeds feeds);
  OutputViews predict(Feeds feeds);
  /// Returns the names of the outputs that predict() omits because they need a feed that is not in
  /// `feeds`.
  std::vector<std::string> omitted_outputs(const std::vector<std::string>& feeds);

  /// Writes parameters and buffers (running statistics) to a safetensors file, atomically. For a
  /// program with LoRA adapters (fluid::lora()), omits frozen variables, unless
  /// SaveOptions::merge_adapters is set. Also writes values that are not finite; see
  /// nonfinite_parameters().
  void save(const std::string& path, const SaveOptions& options = {});
  /// Returns the names of parameters and buffers that have an inf or NaN element.
  std::vector<std::string> nonfinite_parameters();
  /// Reads parameters and buffers from a safetensors file, in any float dtype. The file must
  /// contain exactly the parameters and buffers of the program, with equal shapes, unless
  /// LoadOptions::partial is set. Throws UserError for LoRA adapters that are merged into the
  /// weights already (SaveOptions::merge_adapters). A load() before the first prepare() avoids
  /// compiling the initialisers.
  LoadReport load(const std::string& path, const LoadOptions& options = {});
  /// Stores the column table of the training data (SampleData::table()) with the parameters; null
  /// removes the table. Trainer::fit() sets the table of its training data. save() and snapshot()
  /// write the table; load() and restore() read it. open_data() uses the table to read other data
  /// in the same way.
  void set_column_table(ColumnTablePtr table);
  ColumnTablePtr column_table() const;
  /// Returns the names of the parameters and buffers.
  std::vector<std::string> parameters() const;
  /// Returns a copy of a parameter, a buffer, or an optimizer state such as "fc0.w.m".
  Tensor parameter(std::string_view name);
  /// Sets a parameter, buffer or optimizer state. Converts between float dtypes. Throws UserError
  /// when there is no such variable, when shapes or non-float dtypes differ, and for a finite
  /// element that overflows to inf.
  void set_parameter(std::string_view name, const Tensor& value);

  /// Sets the parameters to their averages over training (MinimizeOptions::ema, swa), or back to
  /// their training values. Meanwhile, the host keeps a copy of the training values. Before the
  /// first update, a parameter is its own average. Buffers, such as running statistics, have no
  /// averages. While averages are in use, eval(), predict(), save() and parameter() read the
  /// averages. These calls then throw UserError: run(), load(), set_parameter(), snapshot(),
  /// restore(), broadcast(VariableSet::all) and first_nonfinite(). With several ranks, every rank
  /// must call use_averages(). Throws UserError if the recipe keeps no averages, and before a
  /// training step is prepared.
  void use_averages(bool use);
  /// Whether the parameters currently hold their averages.
  bool uses_averages() const;

  /// Collective. Returns the variables and options to store in a checkpoint. With ZeRO-1, rank 0's
  /// snapshot contains the gathered optimizer states. The tensors of a snapshot may be views into
  /// the arena. Such views are valid until the next step runs or is prepared.
  Snapshot snapshot();
  /// Collective. Sets the variables of all ranks from rank 0's `snapshot`; the other ranks pass an
  /// empty snapshot. Call prepare() for a training step first. On rank 0, returns the options that
  /// affect results and differ from the snapshot's options, such as "seed 1 (was 0)". If the
  /// returned text is "", the following steps compute the same bits as an uninterrupted run. Pass
  /// the snapshot with std::move() to save memory: each value is freed once it is copied. `name`
  /// names the snapshot in messages. Throws UserError, and changes nothing, for a snapshot of
  /// another program or optimizer.
  std::string restore(Snapshot snapshot, const std::string& name = "snapshot");

  /// Collective. Finds the first op with a non-finite result, by running the last step again. Call
  /// after a step that was skipped or has a non-finite loss, with the batch of the step.
  /// Returns the op and its source line. If several ranks find an op, returns the op of the lowest
  /// rank ("rank 1: ..."). Returns "" when only a sum over ranks is not finite. Changes no
  /// variable; the outputs of the step stay valid. Throws UserError if DebugOptions::check_finite
  /// is off, and for a batch size that was not prepared.
  std::string first_nonfinite(const Batch& batch);
  /// Whether DebugOptions::check_finite is on.
  bool checks_finite() const;

  /// The place on which the program runs; cpu() for a device that the caller implements.
  Place place() const;

  /// The mixed-precision options in use; absent when steps run in f32.
  const std::optional<AmpOptions>& amp() const;
  /// The precision that PrecisionOptions::choose_amp selected, and the measured step times; absent
  /// if choose_amp is off.
  const std::optional<AmpChoice>& amp_choice() const;

  // In the functions below, `recipe` is the name of a recipe. An empty name selects the only recipe
  // of the program.

  /// The loss scale and the number of skipped steps; absent when the loss is not scaled.
  std::optional<LossScaling> loss_scaling(std::string_view recipe = {}) const;
  /// Updates the learning rate schedule Plateau with the metric of an epoch, like PyTorch's
  /// ReduceLROnPlateau.step(). Use the metric of the validation data if there is any, else of the
  /// training data. Returns whether the learning rate was reduced. Does nothing under another
  /// schedule.
  bool reduce_on_plateau(double metric, std::string_view recipe = {});
  /// Whether the learning rate schedule is Plateau.
  bool uses_plateau_schedule(std::string_view recipe = {}) const;

  /// Sets the learning rate of the following steps. All ranks must set the same rate. Throws
  /// UserError unless the schedule is Manual or ExecutorOptions::settable_lr is on, and for a rate
  /// that is not positive and finite.
  void set_learning_rate(double lr, std::string_view recipe = {});
  /// The learning rate of the last update; absent if there is no learning rate schedule.
  std::optional<double> learning_rate(std::string_view recipe = {}) const;

  /// The profile of the steps recorded so far; see ExecutorOptions::profile.
  Profile profile() const;
  /// Peak FLOP/s and memory bandwidth of the place. May first measure the CPU for about a second.
  PeakRates peak_rates() const;

  /// The memory that this executor uses.
  MemoryUse memory() const;
  /// The compile times, the number of compiled kernels, and the number of kernels loaded from the
  /// cache.
  CompileReport compile_report() const;
  /// Returns the IR of the step for `mode`, batch size `batch` and `length` after all passes, as
  /// text for debugging. `length`: 0 for a program without kLength. `recipe`: name of the recipe of
  /// a training step; empty: the only one. Prepares the step if necessary.
  std::string text(Mode mode, int64_t batch, int64_t length = 0,
                   std::string_view recipe = {}) const;

 private:
  class Impl;
  SingleThreadAccess<Impl> impl_;
};

}  // namespace fluid
