#pragma once

#include "executor/gpu/gpu.h"

namespace fluid {

/// A GPU and the stream that steps run on. Whoever has memory of it, outputs included, owns it too.
struct OpenGpu {
  OpenGpu(const FluidGpuTable& table, int device) : gpu(table, device), stream(gpu.stream()) {}

  Gpu gpu;
  GpuStream stream;
};

}  // namespace fluid
