#pragma once

#include <vector>

#include "executor/gpu/gpu_task.h"
#include "ir/graph.h"

namespace fluid {

/// Bytes to plan for a workspace of `bytes`, so that it can start at a multiple of
/// FLUID_GPU_WORKSPACE_ALIGNMENT at any planned address.
constexpr int64_t planned_workspace(int64_t bytes) { return bytes + FLUID_GPU_WORKSPACE_ALIGNMENT; }

/// Bytes planned for the workspace of a fused op's library kernel.
int64_t planned_workspace(const ir::Op& fused);

/// A fused op as a library call: the task, and which buffers it uses.
struct GpuLibraryCall {
  GpuLibraryCall(const ir::Op& fused, int64_t batch, bool tf32);

  GpuTask task;
  /// Indices into the fused op's buffers: a, b, bias or addend if any, result.
  std::vector<size_t> buffers;
  bool adds = false, bias = false;
  int64_t workspace = 0;  ///< bytes that the library may use

  /// `planned`: start of the planned workspace.
  FluidGpuOperands factors(const std::vector<void*>& addresses, void* planned) const;
};

}  // namespace fluid
