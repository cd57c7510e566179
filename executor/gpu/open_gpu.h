#pragma once

#include "executor/gpu/gpu.h"
#include "executor/gpu/gpu_ledger.h"

namespace fluid {

/// A GPU and the stream that steps run on. Whoever has memory of it, outputs included, owns it too.
struct OpenGpu {
  OpenGpu(const FluidGpuTable& table, int device)
      : gpu(table, device), ledger(gpu), stream(gpu.stream()) {}

  Gpu gpu;
  GpuLedger ledger;
  GpuStream stream;
};

}  // namespace fluid
