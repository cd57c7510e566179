#pragma once

#include <array>
#include <memory>
#include <vector>

#include "executor/device/kernel_cache.h"
#include "executor/gpu/gpu_collectives.h"
#include "executor/gpu/gpu_kernels.h"
#include "executor/gpu/gpu_step_list.h"
#include "executor/gpu/gpu_timeline.h"
#include "executor/gpu/gpu_transfers.h"
#include "executor/gpu_driver/open_gpu.h"
#include "executor/gpu_libraries/gpu_algorithm_selector.h"
#include "executor/gpu_libraries/gpu_trial_memory.h"

namespace fluid {

/// A compiled program on a GPU, captured as CUDA graphs. Each step launches one graph, in which
/// collectives are captured on a second stream. Steps run asynchronously, except timed steps and
/// steps with an observer. A step that any rank rejects changes no variable.
class GpuExecutable : public Executable {
 public:
  GpuExecutable(const ir::Program& program, const MemoryPlan& plan, const Options& options,
                std::shared_ptr<const OpenGpu> gpu, KernelCache& kernel_cache, GpuKernels& kernels,
                GpuAlgorithmSelector& selector, std::shared_ptr<GpuCollectives> collectives,
                std::shared_ptr<const GpuFeeds> feeds);
  void enable_timing() override;
  void unbind() override;
  void bind(const MemoryAddresses& memory, const Variables& variables) override;
  std::optional<StepStatus> start(Slots slots, RunTimes* times) override;
  StepStatus finish(int output_slot) override;
  std::vector<ExecutableCall> calls() const override;
  void set_observer(KernelObserver observer) override { observer_ = std::move(observer); }

 private:
  /// Device addresses by index of the call, then by index of the buffer within the call.
  using Buffers = std::vector<std::vector<void*>>;
  using Graphs = std::array<GpuGraph, 4>;  ///< CUDA graphs by index_of(slots)

  void all_reduce_rejection_flag(size_t call) const;
  void join_collectives() const;
  void load_kernels(GpuKernels& kernels);
  std::vector<TrialBuffer> trial_buffers(const GpuCall& call,
                                         const std::vector<void*>& addresses) const;
  void prepare_library_calls(const Buffers& buffers);
  bool prepare_library_call(GpuCall& call, const std::vector<void*>& addresses);
  std::string library_rejection_message(const GpuCall& call) const;
  Graphs capture_graphs(const GpuTimeline* timeline) const;
  GpuGraph capture_graph(Slots slots, const GpuTimeline* timeline) const;
  void queue_call(const Buffers& buffers, size_t call, const GpuTimeline* timeline) const;
  void queue_work(const GpuCall& call, const std::vector<void*>& addresses) const;
  void launch_kernel(const LoadedKernel& kernel, const std::vector<void*>& addresses) const;
  bool has_collectives() const { return step_list_.collective_count > 0; }
  void launch(Slots slots);
  StepStatus run_with_observer(Slots slots);
  StepStatus run_timed(Slots slots, RunTimes& times);
  std::vector<Tensor> host_copies(size_t call, const Buffers& buffers) const;

  const MemoryPlan& plan_;
  int64_t batch_;
  std::shared_ptr<const OpenGpu> gpu_;
  GpuAlgorithmSelector& selector_;
  std::shared_ptr<GpuCollectives> collectives_;
  /// The steps in flight, by output slot.
  std::array<PendingCollective, 2> pending_steps_;
  GpuStepList step_list_;
  std::shared_ptr<const GpuFeeds> feed_copier_;
  std::vector<ByteRange> feed_ranges_;
  std::optional<GpuResults> results_;
  MemoryAddresses memory_;
  std::array<Buffers, 4> buffers_;  ///< index_of(slots) -> addresses of the buffers
  Graphs graphs_;
  /// Timing events of the calls; nullopt until enable_timing().
  std::optional<GpuTimeline> timeline_;
  Graphs timed_graphs_;  ///< CUDA graphs that also record the events of timeline_
  KernelObserver observer_;
};

}  // namespace fluid
