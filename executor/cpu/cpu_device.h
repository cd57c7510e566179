#pragma once

#include <memory>
#include <optional>
#include <string>

#include "executor/comm/communicator.h"
#include "executor/cpu/cpu_target.h"
#include "executor/device/device.h"

namespace fluid {

struct CpuDeviceOptions {
  int threads = 0;                       ///< 0: as many as OpenMP would use
  std::string cache_dir;                 ///< of compiled kernels; empty: none
  Communicator* communicator = nullptr;  ///< with the other processes; null: there are none
  bool trial = false;  ///< the communicator reaches nobody: who watches a run sees its sums too
  /// What code is made for instead of this CPU, which has all that it has: as the passes see it,
  /// and as LLVM calls it.
  struct Lesser {
    TargetDescription description;
    std::string name;
  };
  std::optional<Lesser> lesser = {};
};

std::unique_ptr<Device> cpu_device(const CpuDeviceOptions& options);

}  // namespace fluid
