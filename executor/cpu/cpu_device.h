#pragma once

#include <memory>
#include <optional>
#include <string>

#include "executor/comm/communicator.h"
#include "executor/cpu/cpu_target.h"
#include "executor/device/device.h"

namespace fluid {

struct CpuDeviceOptions {
  int threads = 0;                       ///< 0: OpenMP's default
  std::string cache_dir;                 ///< cache of compiled kernels; empty: none
  Communicator* communicator = nullptr;  ///< connects the ranks; null: a single process
  bool trial = false;  ///< no other rank takes part in collectives; watched runs include them
  /// A less capable CPU to generate code for: its description for the passes, and its LLVM name.
  struct BaselineCpu {
    TargetDescription description;
    std::string name;
  };
  std::optional<BaselineCpu> baseline_cpu = {};
};

std::unique_ptr<Device> cpu_device(const CpuDeviceOptions& options);

}  // namespace fluid
