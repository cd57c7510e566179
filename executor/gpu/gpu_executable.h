#pragma once

#include <array>
#include <memory>
#include <vector>

#include "executor/buffer_refs.h"
#include "executor/gpu/gpu_kernels.h"
#include "executor/gpu/open_gpu.h"

namespace fluid {

/// One call of a step list: the passes of a group, or a copy of `copy_bytes` from buffer 0 to
/// buffer 1.
struct GpuCall {
  const ir::Op* op = nullptr;
  std::shared_ptr<const LoadedKernels> kernels;  ///< null: a copy
  int64_t copy_bytes = 0;
  std::vector<BufferRef> refs;
  bool updates = false;  ///< writes variables
};

/// The step list of a program on a GPU, queued as one or two graphs. The first ends before the
/// first write to a variable where kernels may refuse the data: only when they did not does the
/// second one run.
class GpuExecutable : public Executable {
 public:
  GpuExecutable(const ir::Program& program, const MemoryPlan& plan, int64_t batch,
                std::shared_ptr<const OpenGpu> gpu, KernelMemo& memo, GpuKernels& kernels);
  void bind(const Memory& memory, const Variables& variables) override;
  Status run(Slots slots, RunTimes* times) override;
  std::vector<const ir::Op*> calls() const override;
  void watch(Watch watch) override { watch_ = std::move(watch); }

 private:
  using Buffers = std::vector<std::vector<void*>>;  ///< of each call
  /// A pass of a call; a copy is its own only pass.
  struct Position {
    size_t call = 0, pass = 0;
  };
  /// Bytes of a slot that are copied between GPU and host.
  struct Stretch {
    int64_t offset = 0, bytes = 0;
  };

  void add_group(ir::Op& op, KernelMemo& memo, GpuKernels& kernels);
  void add_store(const ir::Op& op);
  void find_stretches();
  void find_first_update();
  size_t passes(const GpuCall& call) const;
  GpuGraph captured(const Buffers& buffers, Slots slots, size_t begin, size_t end) const;
  void queue(const Buffers& buffers, Position position) const;
  void queue_feeds(int slot) const;
  void queue_outputs(int slot) const;
  Status waited() const;
  Status run_watched(Slots slots);
  Status run_timed(Slots slots, RunTimes& times);
  Status run_one_by_one(Slots slots, const std::function<bool(size_t call, bool done)>& see);
  std::vector<Tensor> host_copies(size_t call, const Buffers& buffers) const;

  const MemoryPlan& plan_;
  int64_t batch_;
  std::shared_ptr<const OpenGpu> gpu_;
  std::vector<GpuCall> calls_;
  std::vector<Position> order_;
  size_t first_update_ = 0;  ///< in `order_`: where the second graph begins
  std::vector<Stretch> feeds_, outputs_;
  std::vector<std::pair<const ir::Op*, int>> error_operands_;
  GpuMemory errors_, host_errors_;  ///< {1, index} or zeros, of each of these
  Memory memory_;
  std::array<Buffers, 4> buffers_;  ///< by index_of(slots)
  std::array<std::array<GpuGraph, 2>, 4> graphs_;
  Watch watch_;
};

}  // namespace fluid
