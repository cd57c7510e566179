#pragma once

#include <functional>
#include <memory>
#include <string>

#include "codegen/gpu.h"
#include "executor/device.h"
#include "executor/gpu/backend_table.h"

namespace fluid {

struct GpuDeviceOptions {
  int device = 0;
  int host_threads = 1;  ///< for copies of feeds
  /// Makes what the table's `assemble` takes, for an architecture ("sm_90").
  std::function<GpuProgram(std::span<const kir::Kernel> passes, const std::string& arch)> compile =
      compile_ptx;
};

/// A GPU that runs programs; `table` must live as long. Throws DeviceError when the GPU cannot be
/// opened.
std::unique_ptr<Device> gpu_device(const FluidGpuTable& table, const GpuDeviceOptions& options);

}  // namespace fluid
