#pragma once

#include <memory>

#include "executor/device.h"

namespace fluid {

struct CpuDeviceOptions {
  int threads = 0;        ///< 0: as many as OpenMP would use
  std::string cache_dir;  ///< of compiled kernels; empty: none
};

std::unique_ptr<Device> cpu_device(const CpuDeviceOptions& options);

}  // namespace fluid
