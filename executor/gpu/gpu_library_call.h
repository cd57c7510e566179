#pragma once

#include <vector>

#include "executor/gpu/gpu_task.h"
#include "ir/graph.h"

namespace fluid {

/// What a fused op was given to a library for, and where it finds its tensors.
struct GpuLibraryCall {
  GpuLibraryCall(const ir::Op& fused, int64_t batch, bool tf32);

  GpuTask task;
  std::vector<size_t> buffers;  ///< of the fused op: a, b, what is added if anything, the result
  bool adds = false, bias = false;

  FluidGpuFactors factors(const std::vector<void*>& addresses, void* workspace) const;
};

}  // namespace fluid
