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
#include "executor/options/params_layout.h"
#include "executor/options/place.h"
#include "executor/options/sample_finder.h"
#include "executor/options/world.h"
#include "executor/places/find_place.h"
#include "executor/profile/profile.h"
#include "executor/session/one_thread.h"
#include "executor/session/outputs.h"
#include "executor/tuning/amp_choice.h"
#include "frontend/program.h"
#include "ir/tensor.h"
#include "passes/options.h"

namespace fluid {

class Device;
class ProcessGroup;

/// The variables that Executor::broadcast() sends.
enum class VariableSet : uint8_t {
  all,
  buffers,  ///< running statistics and other variables that the forward pass writes
};

/// Tensors by the names of the feeds that they are given to.
using Feeds = std::initializer_list<std::pair<std::string, Tensor>>;

/// Batch sizes to compile steps for, by mode. A size listed twice is prepared once.
struct Prepare {
  std::vector<int64_t> train = {};
  std::vector<int64_t> eval = {};
  std::vector<int64_t> predict = {};
  std::vector<std::string> predict_feeds = {};  ///< the feeds that predict() will get; empty: all
};

/// Bytes of the arena, and of memory outside of it.
struct MemoryUse {
  int64_t total = 0;      ///< of the arena: state + slots + transient
  int64_t state = 0;      ///< parameters, optimizer state, counters
  int64_t slots = 0;      ///< one or two slots for feeds, two for outputs
  int64_t transient = 0;  ///< the largest need of any prepared step
  int64_t touched = 0;    ///< of the arena: pages that were used so far
  /// On a GPU: owners of memory outside the arena with their bytes, largest first. Measured as
  /// differences of free memory, so allocations of other processes during set-up are included.
  std::vector<std::pair<std::string, int64_t>> outside = {};
  int64_t pinned = 0;  ///< on a GPU: pinned host memory
};

/// A compiled program on a place, with its variables. The first use initialises all variables from
/// the seed.
///
/// Threads: one thread at a time may use an Executor and its outputs; a call during a call of
/// another thread throws UserError. To serve from N threads, make N executors from one Program,
/// with `threads` = cores / N and one `cache_dir`: kernels are compiled once, and each executor has
/// its own variables. A process that was forked after the first step, or after a GPU was opened,
/// cannot use it: UserError.
///
/// Feeds: a column has the name, shape and dtype of its `data`. u8 converts to any float dtype, and
/// f64 to f32. The attributes `scale`, `mean` and `std` of `data` are applied on the way in.
class Executor {
 public:
  /// Throws UserError when the program cannot be trained or run on `place`, or needs more memory
  /// than `memory_limit`.
  Executor(const Program& program, Place place, ExecutorOptions options = {});
  /// Runs on a device of the caller's own (executor/device/device.h), in one process.
  Executor(const Program& program, std::unique_ptr<Device> device, ExecutorOptions options = {});
  ~Executor();
  Executor(Executor&&) noexcept;

  /// Compiles the steps for these sizes. Later steps of these sizes neither compile nor allocate.
  void prepare(const Prepare& sizes);

  /// Collective. Copies rank 0's variables to all ranks. The first run() does it. Call it after
  /// setting parameters on rank 0 alone.
  void broadcast(VariableSet variables = VariableSet::all);
  /// The ranks that run this program: barriers, broadcasts of text, sums.
  ProcessGroup& process_group();

  /// Runs one training step: forward, backward, update. Without minimize() in the program it runs
  /// the forward pass. Throws UserError for a feed that does not fit, and for data that a kernel
  /// rejects (a label out of range): the step is not applied then. Throws DeviceError when a
  /// library fails. On the CPU the message says whether the step was applied in part; on a GPU that
  /// is unknown.
  ///
  /// On a GPU steps are asynchronous: run() returns once the feeds are copied, and at most two
  /// steps are in flight. An error of step n is thrown, with n in its message, by the first call
  /// that synchronizes with step n: reading the outputs of step n or step n + 1, reading or writing
  /// a variable, save(), prepare(), or run() of step n + 2. Steps in flight after a rejected step
  /// are not applied either. A step with micro-batches, with check_finite or with profiling is
  /// synchronous. When one rank rejects a step, the other ranks throw DeviceError.
  OutputViews run(const Batch& batch);
  /// Computes all outputs in inference mode (no dropout). Changes no variable.
  OutputViews eval(const Batch& batch);
  /// Computes the outputs that need no absent feed, in inference mode. With strict_shapes: the
  /// outputs of the prepared step that computes most of them.
  OutputViews predict(const Batch& batch);
  /// run(), eval() and predict() of tensors by the names of their feeds. The batch size is the
  /// extent of the feeds' batch dimension.
  ///   exe.predict({{"image", tensor}})
  OutputViews run(Feeds feeds);
  OutputViews eval(Feeds feeds);
  OutputViews predict(Feeds feeds);
  /// Names of the outputs that predict() leaves out, given these feeds.
  std::vector<std::string> left_out(const std::vector<std::string>& feeds);

  /// Writes parameters and buffers (running statistics) to a safetensors file, atomically. Values
  /// that are not finite are written as they are; see nonfinite_parameters().
  void save(const std::string& path);
  /// Names of the variables in save()'s file that have an element that is inf or NaN.
  std::vector<std::string> nonfinite_parameters();
  /// Reads parameters and buffers from a safetensors file, which must hold each with its shape, in
  /// any float dtype. Before the first prepare() this saves compiling their initialisers. `layout`:
  /// the layout of linear layers' weights in a file that Fluid did not write.
  void load(const std::string& path, ParamsLayout layout = ParamsLayout::unsaid);
  /// Names of the variables in save()'s file.
  std::vector<std::string> parameters() const;
  /// A copy of a variable: a parameter, or an optimizer state such as "fc0.w.m".
  Tensor parameter(std::string_view name);
  /// Sets a variable; float dtypes are converted. Throws UserError when there is no such variable,
  /// when shapes or dtypes differ, and for a finite value that becomes inf.
  void set_parameter(std::string_view name, const Tensor& value);

  /// Collective. The state of training, for a checkpoint. With ZeRO-1 rank 0's snapshot holds the
  /// gathered optimizer states. Tensors may be views, valid until the next step runs or is
  /// prepared.
  Snapshot snapshot();
  /// Collective. Sets all variables from rank 0's `from`; other ranks give an empty snapshot. A
  /// snapshot that is moved in frees each value once it is set. Returns, on rank 0, the options
  /// that change results and differ from the snapshot's: "seed 1 (was 0)", or "". With "" the
  /// following steps give the bits of a run that was never interrupted. `where` names the snapshot
  /// in messages. Throws UserError, with nothing changed, for a snapshot of another program or
  /// optimizer, and before a training step is prepared.
  std::string restore(Snapshot from, const std::string& where = "snapshot");

  /// Collective. Finds the first op with a non-finite result. Call it after a step that was skipped
  /// or whose loss is not finite, with the batch of the step. Reruns the step and checks every
  /// result. Returns the op and its source line, preceded by the lowest rank that found an op
  /// ("rank 1: ..."). Returns "" when only a sum over ranks is not finite. Changes no variable, and
  /// the step's outputs stay valid. Throws UserError without DebugOptions::check_finite, and for a
  /// batch size that was not prepared.
  std::string first_nonfinite(const Batch& batch);
  /// Whether DebugOptions::check_finite is on.
  bool checks_finite() const;

  /// The place of the constructor; cpu() for a device of the caller's own.
  Place place() const;

  /// The mixed precision in use; absent in f32.
  const std::optional<AmpOptions>& amp() const;
  /// The timing behind choose_amp; absent without it.
  const std::optional<AmpChoice>& amp_choice() const;

  /// The loss scale and the number of skipped steps; absent when the loss is not scaled.
  std::optional<LossScaling> loss_scaling() const;
  /// Gives an epoch's loss to the schedule Plateau: the validation loss, or the training loss
  /// without validation. Returns whether the learning rate falls. Other schedules ignore it.
  bool reduce_on_plateau(double loss);
  /// Whether the schedule is Plateau.
  bool follows_plateau() const;

  /// Sets the learning rate of the following steps. With several ranks all must call it alike.
  /// Throws UserError unless the recipe's schedule is Manual or settable_lr is on, and for a rate
  /// that is not positive and finite.
  void set_learning_rate(double lr);
  /// The learning rate of the last update; absent without a schedule.
  std::optional<double> learning_rate() const;

  /// The steps recorded so far, with ExecutorOptions::profile.
  Profile profile() const;
  /// Peak arithmetic and memory bandwidth of the place. Takes 0.2 s to measure memory.
  Limits limits() const;

  MemoryUse memory() const;
  CompileReport compile_report() const;
  /// The final program of a step as text, for people. Prepares the step.
  std::string text(Mode mode, int64_t batch) const;

 private:
  class Impl;
  OneThread<Impl> impl_;
};

}  // namespace fluid
