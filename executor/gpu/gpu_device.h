#pragma once

#include <map>
#include <memory>
#include <string>

#include "executor/device/device.h"
#include "executor/gpu/gpu_collectives.h"
#include "executor/gpu_driver/backend_table.h"
#include "executor/gpu_libraries/gpu_workspace.h"

namespace fluid {

struct GpuDeviceOptions {
  int device = 0;
  int host_threads = 1;        ///< for copies of feeds
  std::string cache_dir = {};  ///< for machine code and algorithm choices; empty: keep none
  GpuLibraries libraries = {};
  bool tune = true;  ///< choose algorithms by timing, if the choices can be kept
  std::map<std::string, std::string> decisions = {};  ///< Device::decisions() of an earlier run
  GpuPeers peers = {};
};

/// Creates the device of a GPU. `table` must outlive it. Throws DeviceError when the GPU cannot be
/// opened. With peers the call is collective; see GpuCollectives.
std::unique_ptr<Device> gpu_device(const FluidGpuTable& table, const GpuDeviceOptions& options);

}  // namespace fluid
