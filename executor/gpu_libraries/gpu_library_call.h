#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "executor/gpu_driver/backend_table.h"
#include "executor/gpu_driver/gpu_task.h"
#include "ir/graph.h"
#include "passes/target.h"

namespace fluid {

inline constexpr std::string_view kGpuProductKernel = "cublaslt.matmul";

/// Describes the matmul `op` and its epilogue as a cuBLASLt matmul. The epilogue is a bias, a relu,
/// both, or an addend. Returns nullopt when cuBLASLt cannot compute it.
std::optional<FluidGpuMatmul> gpu_product(const ir::Op& op, const Chain& epilogue, int64_t batch);

/// The name of the convolution kernel that takes `op`; empty when none does.
std::string_view gpu_convolution_kernel(const ir::Op& op);

/// Describes the convolution `op` and its epilogue as a cuDNN convolution. The epilogue is a bias
/// with an optional relu, or an addend. Returns nullopt when cuDNN cannot compute it.
std::optional<FluidGpuConvolution> gpu_convolution(const ir::Op& op, const Chain& epilogue,
                                                   int64_t batch);

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
