#pragma once

#include <array>
#include <memory>
#include <vector>

#include "executor/buffer_refs.h"
#include "executor/gpu/gpu_chooser.h"
#include "executor/gpu/gpu_collectives.h"
#include "executor/gpu/gpu_feeds.h"
#include "executor/gpu/gpu_kernels.h"
#include "executor/gpu/gpu_library_call.h"
#include "executor/gpu/gpu_results.h"
#include "executor/gpu/gpu_timeline.h"
#include "executor/gpu/gpu_trial_buffers.h"
#include "executor/gpu/open_gpu.h"
#include "executor/kernel_memo.h"

namespace fluid {

/// A pass of a call.
struct GpuPass {
  /// What it is given: the call's buffers; these and the word that says that data was refused, by
  /// this step or one before; or, to set that word, the error words and it.
  enum class Kind : uint8_t { plain, guarded, refusal };
  kir::Kernel kernel;
  Kind kind = Kind::plain;
  bool heeds = false;  ///< it comes after what other processes told of data that they refused
  LoadedPass loaded = {};
};

/// One call of a step list: the passes of a group, a library kernel, whose workspace is the
/// last buffer, an exchange with other processes, or else a copy of `copy_bytes` from buffer 0 to
/// buffer 1.
struct GpuCall {
  const ir::Op* op = nullptr;
  std::vector<GpuPass> passes;
  std::optional<GpuLibraryCall> library = {};
  GpuMultiplier multiplier = {};  ///< of the library call, once it is bound
  int revision = 0;               ///< GpuChooser', of the multiplier
  int64_t copy_bytes = 0;
  ExchangeRole exchange = {};
  size_t number = 0;  ///< of the exchange
  std::vector<BufferRef> refs;
  bool updates = false;  ///< writes variables

  bool refuses() const { return !refs.empty() && refs.back().error_word >= 0; }
};

/// The step list of a program on a GPU, queued as one graph that nobody waits for. Where kernels
/// may refuse the data, what writes to variables looks itself whether they did: it comes after all
/// of them, and then does nothing. Processes that exchange sums tell each other whether they did,
/// those too that have no sample to refuse: a step that one of them refuses none applies. Exchanges
/// run beside it on a stream of their own, in the same graph. A step that is watched or timed has
/// ended when it was begun.
class GpuExecutable : public Executable {
 public:
  GpuExecutable(const ir::Program& program, const MemoryPlan& plan, const Options& options,
                std::shared_ptr<const OpenGpu> gpu, KernelMemo& memo, GpuKernels& kernels,
                GpuChooser& chooser, std::shared_ptr<GpuCollectives> collectives,
                std::shared_ptr<const GpuFeeds> feeds);
  void expect_times() override;
  void unbind() override;
  void bind(const Memory& memory, const Variables& variables) override;
  std::optional<Status> start(Slots slots, RunTimes* times) override;
  Status finish(int outputs) override;
  std::vector<const ir::Op*> calls() const override;
  void watch(Watch watch) override { watch_ = std::move(watch); }

 private:
  using Buffers = std::vector<std::vector<void*>>;  ///< of each call
  using Graphs = std::array<GpuGraph, 4>;           ///< by index_of(slots)

  void add_group(ir::Op& op, KernelMemo& memo);
  void add_library_call(ir::Op& op, bool tf32);
  void add_store(const ir::Op& op);
  void add_exchange(ir::Op& op);
  void relate();
  void guard_updates();
  void share_refusals(size_t exchanges_before);
  void tell_refusals(size_t call) const;
  void join_exchanges() const;
  void load(GpuKernels& kernels);
  std::vector<TrialBuffer> trial_buffers(const GpuCall& call,
                                         const std::vector<void*>& addresses) const;
  void prepare_library_calls(const Buffers& buffers);
  bool prepare_library_call(GpuCall& call, const std::vector<void*>& addresses);
  std::string refusal_of(const GpuCall& call) const;
  Graphs captured(const GpuTimeline* timeline) const;
  GpuGraph captured(Slots slots, const GpuTimeline* timeline) const;
  void queue(const Buffers& buffers, size_t call, const GpuTimeline* timeline) const;
  void queue_work(const GpuCall& call, const std::vector<void*>& own) const;
  void queue(const LoadedPass& pass, const std::vector<void*>& addresses) const;
  bool exchanges() const { return exchanges_ > 0; }
  void launch(Slots slots);
  Status run_watched(Slots slots);
  Status run_timed(Slots slots, RunTimes& times);
  std::vector<Tensor> host_copies(size_t call, const Buffers& buffers) const;

  const MemoryPlan& plan_;
  int64_t batch_;
  std::shared_ptr<const OpenGpu> gpu_;
  GpuChooser& chooser_;
  std::shared_ptr<GpuCollectives> collectives_;
  size_t exchanges_ = 0;                ///< of sums and shares, that a step has
  std::optional<size_t> refusals_;      ///< the number of that by which processes tell of refusals
  size_t tells_before_ = 0;             ///< which call, then
  std::array<BegunTogether, 2> begun_;  ///< of steps with exchanges, by their slot for outputs
  std::vector<GpuCall> calls_;
  std::shared_ptr<const GpuFeeds> feeder_;
  std::vector<Stretch> feeds_;
  std::vector<std::pair<const ir::Op*, int>> error_operands_;  ///< while calls are added
  std::optional<GpuResults> results_;
  Memory memory_;
  std::array<Buffers, 4> buffers_;  ///< by index_of(slots)
  Graphs graphs_;
  std::optional<GpuTimeline> timeline_;  ///< of timed steps
  Graphs timed_graphs_;                  ///< which leave its marks
  Watch watch_;
};

}  // namespace fluid
