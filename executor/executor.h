#pragma once

#include <cstdint>
#include <functional>
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
  buffers,  ///< that the forward pass writes, as running statistics: the others stay equal
};

/// The sizes of batch that will come, by mode. Sizes listed twice are prepared once.
struct Prepare {
  std::vector<int64_t> train = {};
  std::vector<int64_t> eval = {};
  std::vector<int64_t> predict = {};
  std::vector<std::string> predict_feeds = {};  ///< the feeds that predict() will get; empty: all
};

/// Bytes of the one arena.
struct MemoryUse {
  int64_t total = 0;      ///< the arena: state + slots + transient
  int64_t state = 0;      ///< parameters, optimizer state, counters
  int64_t slots = 0;      ///< for feeds, one or two, and two for outputs
  int64_t transient = 0;  ///< the largest need of any prepared step
  int64_t touched = 0;    ///< of the total, used so far: the system gives memory at the first use
  /// On a GPU: who takes its memory besides, with bytes, those first that take most. Measured, so
  /// that what other processes take while this one is set up counts.
  std::vector<std::pair<std::string, int64_t>> outside = {};
  int64_t pinned = 0;  ///< on a GPU: bytes of host memory that it copies from and to
};

/// A compiled program on a place, with its variables. One thread at a time may use it: a call that
/// comes while another thread is in a call throws UserError. To serve from several threads, give
/// each an Executor of its own, made from one Program (whose use is then read-only), with
/// `threads` = cores / threads and one `cache_dir`, so that kernels are compiled once; each has its
/// own copy of the variables. Outputs belong to the thread that runs the steps, too.
///
/// A process forked from one that has run steps or opened a GPU cannot use it, which is a
/// UserError.
///
/// The first use initialises every variable from the seed. A feed is given by the name and shape of
/// its `data`, in the recorded dtype; u8 is taken for any float `data` too, and f64 for f32, to
/// which it is rounded. What is fed is scaled and normalised as the attributes `scale`, `mean` and
/// `std` of `data` say.
class Executor {
 public:
  /// Throws UserError when the program cannot be trained or run on `place`, or needs more memory
  /// than `memory_limit`.
  Executor(const Program& program, Place place, ExecutorOptions options = {});
  /// On a device of the caller's own (executor/device.h), in one process.
  Executor(const Program& program, std::unique_ptr<Device> device, ExecutorOptions options = {});
  ~Executor();
  Executor(Executor&&) noexcept;

  /// Compiles the steps for these sizes, so that no later step of one of them compiles or
  /// allocates.
  void prepare(const Prepare& sizes);

  /// Collective. Gives every rank rank 0's values. The first run() does so by itself; later it is
  /// for who sets parameters on rank 0 alone.
  void broadcast(VariableSet variables = VariableSet::all);
  /// The ranks that run this program together: barriers, text and sums across ranks.
  ProcessGroup& process_group();

  /// One training step: forward, backward, update. A program without `minimize` only runs forward.
  /// Throws UserError for a feed that does not fit and for data a kernel refuses (a label out of
  /// range): the step is then not applied. Throws DeviceError when a library fails, which says on
  /// the CPU whether the step was applied in part; on a GPU nobody knows it then.
  ///
  /// On a GPU it returns once the feeds are copied, which the caller may change then, and the step
  /// goes on by itself: also with eval() and predict(). Two of them are under way at most. What a
  /// step is refused for is thrown by the first call that waits for it: of its Outputs or those of
  /// the step after it, of the second run after it (without prefetch the next with new feeds), or
  /// of what reads or sets variables, saves or prepares. It says which step it was, if another. A
  /// step begun meanwhile is not applied either. A step of micro-batches, with check_finite or
  /// profiled is over when run() returns. Of several processes others are thrown a DeviceError.
  Outputs run(const Batch& batch);
  /// All outputs in inference mode (dropout off); changes no variable.
  Outputs eval(const Batch& batch);
  /// The outputs that need none of the feeds missing from `batch`, in inference mode. With
  /// strict_shapes: the outputs of the prepared step that gives most of them.
  Outputs predict(const Batch& batch);
  /// Names of the outputs that predict() leaves out, given these feeds.
  std::vector<std::string> left_out(const std::vector<std::string>& feeds);

  /// All parameters and recorded states (running statistics) as a safetensors file, written
  /// atomically, with inf and NaN where they hold these: see nonfinite_parameters().
  void save(const std::string& path);
  /// Names of the variables that save() writes and that have an element that is inf or NaN.
  std::vector<std::string> nonfinite_parameters();
  /// Sets them from a safetensors file: each must be there with its shape, of any float dtype.
  /// Before the first prepare() it saves the compilation of their initialisers. `layout` says how a
  /// file that Fluid did not write holds the weights of linear layers.
  void load(const std::string& path, ParamsLayout layout = ParamsLayout::unsaid);
  /// Names of what save() writes.
  std::vector<std::string> parameters() const;
  /// A copy of a variable: a parameter, or a state such as "fc0.w.m".
  Tensor parameter(std::string_view name);
  /// Throws UserError when there is no such variable or the shape differs; converts between floats,
  /// and no other dtype. A number that the variable's dtype would make inf is a UserError, too.
  void set_parameter(std::string_view name, const Tensor& value);

  /// All that training goes on from, for a checkpoint, whole also where processes share it: then on
  /// rank 0, and without what is shared on the others. The
  /// values may be views, valid until the next step runs or is prepared.
  Snapshot snapshot();
  /// Collective. Sets all variables from rank 0's `from`; other ranks give an empty snapshot. A
  /// snapshot that is moved in frees each value once it is set. Returns, on rank 0, the options
  /// that change results and differ from the snapshot's: "seed 1 (was 0)", or "". With "" the
  /// following steps give the bits of a run that was never interrupted. `where` names the snapshot
  /// in messages. Throws UserError, with nothing changed, for a snapshot of another program or
  /// optimizer, and before a training step is prepared.
  std::string restore(Snapshot from, const std::string& where = "snapshot");

  /// With check_finite, after a step that was skipped or whose loss is not finite: runs it again on
  /// its batch, from what it left where it was applied all the same, and looks at every result.
  /// Says which op gave the first that is not finite, with its place in the user's source; "" when
  /// all are. Changes nothing. The step's outputs stay valid. A call of all ranks, each of which
  /// looks at its own part: they get what the lowest rank found, "rank 1: ...", and "" where only a
  /// sum over ranks is not finite. Throws UserError without check_finite, and for a batch that no
  /// step was prepared for.
  std::string first_nonfinite(const Batch& batch);

  /// ExecutorOptions::check_finite.
  bool checks_finite() const;

  /// Where it runs; cpu() also for a device of the caller's own.
  Place place() const;

  /// The mixed precision that it runs in, and how it was chosen, with choose_amp.
  const std::optional<AmpOptions>& amp() const;
  const std::optional<AmpChoice>& amp_choice() const;

  /// Nothing when the loss is not scaled.
  std::optional<LossScaling> loss_scaling() const;
  /// Tells the schedule Plateau what the loss of an epoch came to, that of validation data where
  /// there is some. Whether the learning rate falls. With another schedule it changes nothing.
  bool reduce_on_plateau(double loss);
  /// Whether reduce_on_plateau() is waited for.
  bool follows_plateau() const;

  /// Of the last update, when the recipe has a schedule.
  std::optional<double> learning_rate() const;

  /// What was recorded so far of the steps that the option `profile` asks for.
  Profile profile() const;
  /// What the place can do at most: a fifth of a second to measure memory.
  Limits limits() const;

  MemoryUse memory() const;
  CompileReport compile_report() const;
  /// The final program of a step as text, for people; prepares the step.
  std::string text(Mode mode, int64_t batch) const;

 private:
  class Impl;
  OneThread<Impl> impl_;
};

}  // namespace fluid
