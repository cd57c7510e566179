#pragma once

#include <array>

#include "executor/gpu/gpu_task.h"

namespace fluid {

/// Bytes that a library kernel may have, where users do not say.
inline constexpr int64_t kGpuWorkspace = int64_t{64} << 20;

/// What users say of a GPU's libraries.
struct GpuLibraries {
  int64_t workspace = 0;  ///< bytes that a kernel of theirs may have at most; 0: kGpuWorkspace
  bool tf32 = false;      ///< products and convolutions in f32 may round their operands to TF32
  int64_t most() const { return workspace > 0 ? workspace : kGpuWorkspace; }
};

/// Bytes of the copies that cuDNN makes of images, filters and maps, 0 of what it takes as it is,
/// for kernels that want them otherwise: on tensor cores with channels last, in eights or, of f32,
/// in fours, else plain. As its plans for the examples' convolutions need them (9.19, for sm_80 to
/// sm_120).
std::array<double, 3> turned_bytes(const FluidGpuConvolution& convolution);

/// Bytes of workspace that the library may have for a task, of `most` for any: as many as some of
/// its ways need that it takes for the fastest (for convolutions what cuDNN 9.13, 9.19 and 9.26 say
/// of GPUs that are described to them), and some to choose from.
int64_t workspace_for(const GpuTask& task, int64_t most);

}  // namespace fluid
