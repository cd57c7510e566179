#pragma once

#include "executor/gpu/gpu.h"
#include "executor/gpu/gpu_ledger.h"

namespace fluid {

/// A GPU, the stream that steps run on, and one for what is fetched while they go on. Whoever has
/// memory of it, outputs included, owns it too.
struct OpenGpu {
  OpenGpu(const FluidGpuTable& table, int device)
      : gpu(table, device), ledger(gpu), stream(gpu.stream()), fetches(gpu.stream()) {}

  Gpu gpu;
  GpuLedger ledger;
  GpuStream stream, fetches;
};

}  // namespace fluid
