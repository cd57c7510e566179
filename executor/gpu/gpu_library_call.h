#pragma once

#include <vector>

#include "executor/gpu/gpu_task.h"
#include "ir/graph.h"

namespace fluid {

/// Bytes to plan for a library's kernel that may need so many: they begin at a multiple of
/// FLUID_GPU_WORKSPACE_ALIGNMENT, wherever the plan puts them.
constexpr int64_t planned_workspace(int64_t bytes) { return bytes + FLUID_GPU_WORKSPACE_ALIGNMENT; }

/// What was planned for the library kernel of a fused op.
int64_t planned_workspace(const ir::Op& fused);

/// What a fused op was given to a library for, and where it finds its tensors.
struct GpuLibraryCall {
  GpuLibraryCall(const ir::Op& fused, int64_t batch, bool tf32);

  GpuTask task;
  std::vector<size_t> buffers;  ///< of the fused op: a, b, what is added if anything, the result
  bool adds = false, bias = false;
  int64_t workspace = 0;  ///< bytes that it may have

  /// `planned`: where the memory that was planned for its workspace begins.
  FluidGpuFactors factors(const std::vector<void*>& addresses, void* planned) const;
};

}  // namespace fluid
