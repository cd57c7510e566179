#pragma once

#include <map>
#include <memory>
#include <string>

#include "executor/device/device.h"
#include "executor/gpu/backend_table.h"
#include "executor/gpu/gpu_collectives.h"
#include "executor/gpu/gpu_workspace.h"

namespace fluid {

struct GpuDeviceOptions {
  int device = 0;
  int host_threads = 1;        ///< for copies of feeds
  std::string cache_dir = {};  ///< of machine code and choices; empty: none is kept
  GpuLibraries libraries = {};
  bool tune = true;  ///< choose among the library's algorithms by timing, where it can be kept
  std::map<std::string, std::string> decisions = {};  ///< Device::decisions() of an earlier run
  GpuPeers peers = {};
};

/// A GPU that runs programs; `table` must live as long. Throws DeviceError when the GPU cannot be
/// opened. With peers a call of all of them, see GpuCollectives.
std::unique_ptr<Device> gpu_device(const FluidGpuTable& table, const GpuDeviceOptions& options);

}  // namespace fluid
