#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "executor/amp_choice.h"
#include "executor/compile_report.h"
#include "executor/one_thread.h"
#include "executor/outputs.h"
#include "executor/params_layout.h"
#include "executor/place.h"
#include "executor/profile/profile.h"
#include "executor/sample_finder.h"
#include "executor/snapshot.h"
#include "executor/world.h"
#include "frontend/program.h"
#include "ir/tensor.h"
#include "passes/options.h"

namespace fluid {

class Device;

struct ExecutorOptions {
  int64_t batch = 0;                ///< samples of the first prepared step; 0: prepare() says later
  uint64_t seed = 0;                ///< of initialisers and random ops
  int threads = 0;                  ///< 0: as many as OpenMP would use
  std::optional<DType> dtype = {};  ///< f64: the whole program in f64
  std::optional<AmpOptions> amp = {};  ///< mixed precision
  /// Whether `amp`, bf16 where it is absent, is better than f32, and at which level, is found by
  /// timing steps of `batch` samples: rank 0 does it for all.
  bool choose_amp = false;
  std::optional<Precision> chosen_amp = {};  ///< what rank 0 chose in an earlier run, which holds
  /// Slices that a training step cuts its batch into, one after the other through the same memory:
  /// activations are those of a slice, gradients add up, and the optimizer comes once. Fewer where
  /// the batch has fewer samples.
  int64_t micro_batches = 1;
  /// The processes that train together, each on its part of every batch: run() is then a call of
  /// all of them, and gives the losses and metrics of the whole batch. Parameters start as rank
  /// 0's.
  World world = {};
  /// One process does all that several would: what it exchanges goes through the place's means for
  /// that, as NCCL, and comes back. To try these where there is one GPU.
  bool exchange_alone = false;
  /// After it a rank that is late is given up. On GPUs a step has so long in all.
  std::chrono::milliseconds comm_timeout{60'000};
  /// The same where ranks come at different times, in the first step, as others still compile, and
  /// where one saves for all. One that is stopped is given up after comm_timeout there too.
  std::chrono::milliseconds first_timeout{300'000};
  Buckets buckets = {};  ///< of gradients on their way
  bool sync_bn = false;  ///< batch_norm takes the statistics of the samples of all ranks
  /// 1: each process keeps and updates its part of the optimizer's state alone, then gives the
  /// others the parameters (ZeRO-1). parameter("fc0.w.m") is that part then, a vector, and
  /// snapshot() a call of all ranks.
  int zero = 0;
  bool any_batch = false;  ///< compile what is not prepared when it comes: do not refuse
  /// For first_nonfinite(): a step whose loss is not finite is not applied. Where the loss is
  /// scaled the gradients alone decide, as without, and they may be finite all the same.
  bool check_finite = false;
  bool fuse = true;
  bool libraries = true;  ///< let library kernels take the ops they are better at
  /// On a GPU: products and convolutions in f32 may round their operands to TF32, which has 10
  /// bits, as PyTorch's do where allow_tf32 is set.
  bool tf32 = false;
  /// On a GPU: the feeds of a step are copied while the step before runs, into a second slot for
  /// feeds. Without it a new batch waits for the step before: it costs nothing where one batch
  /// stays.
  bool prefetch = true;
  int64_t workspace = 0;  ///< bytes that a GPU's library kernels may have; 0: 64 MiB
  /// On a GPU: choose among a library's algorithms by timing them, once: what was chosen is kept in
  /// `cache_dir`. Else, and where there is no such directory, its first choices are taken.
  bool tune = true;
  std::map<std::string, std::string> decisions = {};  ///< Snapshot's, of a run that goes on
  /// Guards between memory ranges; dead ranges filled with NaN; the program verified after each
  /// pass.
  bool verify_plan = false;
  std::string cache_dir = {};                  ///< of compiled kernels; empty: none
  std::optional<ProfileOptions> profile = {};  ///< the steps whose times profile() gives
  /// Names the sample of a value that a step rejects, as Dataset::place_of() does; without it the
  /// message gives the sample's index in the batch.
  SampleFinder find_sample = {};
  /// Bytes the arena may take; 0: as much as the machine has. Where a step makes it grow, the old
  /// arena is there besides until the variables have moved and no output tensor from it is kept.
  int64_t memory_limit = 0;
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

  /// Compiles the steps for these sizes, so that no later step compiles or allocates.
  void prepare(const Prepare& sizes);

  /// Gives every process rank 0's variables. The first run() does so by itself; later it is for
  /// whoever sets parameters on rank 0 alone. A call of all ranks.
  void broadcast();
  /// The same of the variables alone that recorded stores write, as running statistics: the others
  /// are the same on all ranks once training has begun.
  void broadcast_recorded();
  /// With zero = 1, after restore() on rank 0 and broadcast(): gives every process its parts of the
  /// optimizer's state in `from`, which is null on all but rank 0. A call of all ranks.
  void scatter(const Snapshot* from);
  /// Rank 0's `text`, on every rank. A call of all ranks.
  std::string share(const std::string& text);
  /// Does `work` on rank 0, as saving, for which the others wait up to first_timeout. A call of all
  /// ranks; what `work` throws, the others throw as a UserError.
  void lead(const std::function<void()>& work);
  /// Makes sure that every process was given the same `value` of `what`: a call of all ranks.
  /// Throws the same UserError on each, which names those that differ from rank 0, when some do.
  void agree(const std::string& what, const std::string& value);
  /// The same of several values by their names, those that differ among which are named, too.
  void agree(const std::string& what, const std::map<std::string, std::string>& values);
  /// Adds up figures over all processes, in place. A call of all ranks.
  void add_up(std::span<double> figures);

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
  /// The outputs that need none of the feeds missing from `batch`, in inference mode: of the
  /// prepared steps that which gives most; with any_batch all, by a step for just these feeds.
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
  /// Goes on from `from`, which `where` names in messages: given away, as by std::move, its values
  /// go one by one, so that a checkpoint is never in memory as a whole. Returns the options that
  /// change results and differ from the snapshot's: "seed 1 (was 0)", or "". With none the steps
  /// that follow give the bits of a run that was never interrupted. Throws UserError, with nothing
  /// changed, for a snapshot of another program or optimizer, and before a training step is
  /// prepared.
  std::string restore(Snapshot from, const std::string& where = "snapshot");

  /// With check_finite, after a step that was skipped or whose loss is not finite: runs it again on
  /// its batch, from what it left where it was applied all the same, and looks at every result.
  /// Says which op gave the first that is not finite, with its place in the user's source; "" when
  /// all are. Changes nothing. The step's outputs stay valid. A call of all ranks, each of which
  /// looks at its own part: they get what the lowest rank found, "rank 1: ...", and "" where only a
  /// sum over ranks is not finite. Throws UserError without check_finite, and for a batch that no
  /// step was prepared for.
  std::string first_nonfinite(const Batch& batch);

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
