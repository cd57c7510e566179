#pragma once

#include "executor/gpu/gpu.h"
#include "executor/gpu/gpu_ledger.h"

namespace fluid {

/// An open GPU, the steps' stream, and a stream for fetches during later steps. Shared by all
/// owners of its memory, including outputs.
struct OpenGpu {
  OpenGpu(const FluidGpuTable& table, int device)
      : gpu(table, device), ledger(gpu), stream(gpu.stream()), fetches(gpu.stream()) {}

  Gpu gpu;
  GpuLedger ledger;
  GpuStream stream, fetches;
};

}  // namespace fluid
