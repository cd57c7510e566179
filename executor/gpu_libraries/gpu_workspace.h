#pragma once

#include <array>

#include "executor/gpu_driver/gpu_task.h"

namespace fluid {

/// Default maximum workspace of a library kernel in bytes.
inline constexpr int64_t kGpuWorkspace = int64_t{64} << 20;

/// The user's options for GPU libraries.
struct GpuLibraryOptions {
  int64_t workspace = 0;  ///< maximum workspace of a library kernel in bytes; 0: kGpuWorkspace
  bool tf32 = false;      ///< whether f32 matmuls and convolutions may round operands to TF32
  /// Maximum workspace of a library kernel in bytes.
  int64_t max_workspace() const { return workspace > 0 ? workspace : kGpuWorkspace; }
};

/// Workspace bytes of the tensors that cuDNN converts to another layout: {images, filters, feature
/// maps}; 0 if the tensor needs no conversion. Tensor-core kernels require NHWC, and channel counts
/// that are multiples of 8 (TF32: 4). Other kernels require NCHW.
/// Derived from cuDNN 9.19's plans on sm_80 to sm_120 for the convolutions of the examples.
std::array<double, 3> layout_conversion_bytes(const FluidGpuConvolution& convolution);

/// Returns the bytes of workspace to plan for a library task, at most `max_bytes`. This workspace
/// suffices for some of the algorithms that the library's heuristics rank first. For convolutions,
/// the estimate is derived from the plans of cuDNN 9.13, 9.19 and 9.26 for simulated GPUs.
int64_t workspace_for(const GpuTask& task, int64_t max_bytes);

}  // namespace fluid
