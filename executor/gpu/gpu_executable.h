#pragma once

#include <array>
#include <memory>
#include <vector>

#include "executor/device/kernel_memo.h"
#include "executor/gpu/gpu_collectives.h"
#include "executor/gpu/gpu_kernels.h"
#include "executor/gpu/gpu_step_list.h"
#include "executor/gpu/gpu_timeline.h"
#include "executor/gpu/gpu_transfers.h"
#include "executor/gpu_driver/open_gpu.h"
#include "executor/gpu_libraries/gpu_chooser.h"
#include "executor/gpu_libraries/gpu_trial_memory.h"

namespace fluid {

/// The step list of a program on a GPU, captured as a CUDA graph that runs asynchronously.
/// Collectives run on a second stream in the same graph. A step that this or another rank rejects
/// changes no variable. A watched or timed step is synchronous.
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
  using Buffers = std::vector<std::vector<void*>>;  ///< by call
  using Graphs = std::array<GpuGraph, 4>;           ///< by index_of(slots)

  void sync_error_words(size_t call) const;
  void join_collectives() const;
  void load(GpuKernels& kernels);
  std::vector<TrialBuffer> trial_buffers(const GpuCall& call,
                                         const std::vector<void*>& addresses) const;
  void prepare_library_calls(const Buffers& buffers);
  bool prepare_library_call(GpuCall& call, const std::vector<void*>& addresses);
  std::string rejection_of(const GpuCall& call) const;
  Graphs captured(const GpuTimeline* timeline) const;
  GpuGraph captured(Slots slots, const GpuTimeline* timeline) const;
  void queue(const Buffers& buffers, size_t call, const GpuTimeline* timeline) const;
  void queue_work(const GpuCall& call, const std::vector<void*>& own) const;
  void queue(const LoadedPass& pass, const std::vector<void*>& addresses) const;
  bool exchanges() const { return list_.exchanges > 0; }
  void launch(Slots slots);
  Status run_watched(Slots slots);
  Status run_timed(Slots slots, RunTimes& times);
  std::vector<Tensor> host_copies(size_t call, const Buffers& buffers) const;

  const MemoryPlan& plan_;
  int64_t batch_;
  std::shared_ptr<const OpenGpu> gpu_;
  GpuChooser& chooser_;
  std::shared_ptr<GpuCollectives> collectives_;
  std::array<StartedCollective, 2> begun_;  ///< by output slot, for steps with collectives
  GpuStepList list_;
  std::shared_ptr<const GpuFeeds> feeder_;
  std::vector<ByteRange> feeds_;
  std::optional<GpuResults> results_;
  Memory memory_;
  std::array<Buffers, 4> buffers_;  ///< by index_of(slots)
  Graphs graphs_;
  std::optional<GpuTimeline> timeline_;  ///< events of timed steps
  Graphs timed_graphs_;                  ///< graphs that record the timeline's events
  Watch watch_;
};

}  // namespace fluid
