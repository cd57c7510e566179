#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "executor/gpu_driver/backend_table.h"
#include "executor/gpu_driver/gpu_task.h"
#include "ir/graph.h"
#include "passes/target.h"

namespace fluid {

/// Name of the library kernel for matmuls.
inline constexpr std::string_view kGpuMatmulKernel = "cublaslt.matmul";

/// Converts the matmul `op` and its epilogue to a cuBLASLt matmul. The epilogue is a bias, a relu,
/// both, or an addend. Returns nullopt when cuBLASLt does not support the op.
std::optional<FluidGpuMatmul> gpu_matmul(const ir::Op& op, const EpilogueOps& epilogue,
                                         int64_t batch);

/// Returns the name of the library kernel for the convolution `op`; empty if there is none.
std::string_view gpu_convolution_kernel_name(const ir::Op& op);

/// Converts the convolution `op` and its epilogue to a cuDNN convolution. The epilogue is a bias
/// with an optional relu, or an addend. Returns nullopt when cuDNN does not support the op.
std::optional<FluidGpuConvolution> gpu_convolution(const ir::Op& op, const EpilogueOps& epilogue,
                                                   int64_t batch);

/// Bytes that the memory plan reserves for a workspace of `bytes` bytes, including padding to align
/// its start to FLUID_GPU_WORKSPACE_ALIGNMENT.
constexpr int64_t planned_workspace(int64_t bytes) { return bytes + FLUID_GPU_WORKSPACE_ALIGNMENT; }

/// Bytes that the memory plan reserves for the workspace of a fused op's library kernel.
int64_t planned_workspace(const ir::Op& fused);

/// The library call of a fused op: a task, and the buffers of the fused op on which the task runs.
struct GpuLibraryCall {
  GpuLibraryCall(const ir::Op& fused, int64_t batch, bool tf32);

  GpuTask task;
  /// Indices of the fused op's buffers that hold operand a, operand b, the bias or addend (if any),
  /// and the result, in this order.
  std::vector<size_t> buffers;
  bool has_addend = false, has_bias = false;
  int64_t workspace = 0;  ///< maximum workspace in bytes

  /// Returns the operands of the task. `addresses`: the addresses of the fused op's buffers.
  /// `workspace_start`: start of the workspace that the memory plan reserves.
  FluidGpuOperands operands(const std::vector<void*>& addresses, void* workspace_start) const;
};

}  // namespace fluid
