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
  int device = 0;        ///< CUDA device index
  int host_threads = 1;  ///< number of host threads that copy feeds
  /// Folder of cached cubins and chosen algorithms; empty: no cache on disk.
  std::string cache_dir = {};
  GpuLibraryOptions libraries = {};
  /// Whether to choose library algorithms by timing; ignored if cache_dir is empty.
  bool tune = true;
  /// The tuning choices of an earlier run, from Device::tuning_record().
  std::map<std::string, std::string> tuning_record = {};
  GpuPeers peers = {};
};

/// Creates a Device for a GPU. `table` must outlive the Device. Throws DeviceError when the GPU
/// cannot be opened. If `options.peers.host_communicator` is not null, the call is collective.
std::unique_ptr<Device> gpu_device(const FluidGpuTable& table, const GpuDeviceOptions& options);

}  // namespace fluid
