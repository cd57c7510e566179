#pragma once

#include <array>

#include "executor/gpu_driver/gpu_task.h"

namespace fluid {

/// Default workspace of a library kernel in bytes.
inline constexpr int64_t kGpuWorkspace = int64_t{64} << 20;

/// The user's options for GPU libraries.
struct GpuLibraries {
  int64_t workspace = 0;  ///< maximum bytes per kernel; 0: kGpuWorkspace
  bool tf32 = false;      ///< matmuls and convolutions in f32 may round operands to TF32
  int64_t most() const { return workspace > 0 ? workspace : kGpuWorkspace; }
};

/// Bytes that cuDNN needs to convert the layouts of images, filters and feature maps; 0 for a
/// tensor that it uses directly. Tensor-core kernels want NHWC with channels in multiples of 8
/// (f32: 4); other kernels want NCHW. Derived from cuDNN 9.19's plans for the examples'
/// convolutions, sm_80 to sm_120.
std::array<double, 3> layout_conversion_bytes(const FluidGpuConvolution& convolution);

/// Workspace of a library task in bytes, at most `most`. Suffices for some of the algorithms that
/// the library expects to be fastest, with a reserve for others. Convolutions: as queried from
/// cuDNN 9.13, 9.19 and 9.26 for simulated GPUs.
int64_t workspace_for(const GpuTask& task, int64_t most);

}  // namespace fluid
