#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "executor/comm/communicator.h"
#include "executor/cpu/cpu_target.h"
#include "executor/device/device.h"

namespace fluid {

struct CpuDeviceOptions {
  int threads = 0;                       ///< compute threads; 0: OpenMP's default
  std::string cache_dir;                 ///< on-disk cache of compiled kernels; empty: no cache
  Communicator* communicator = nullptr;  ///< communicator of all ranks; null in a single process
  /// Whether this rank is the only participant of its collectives, as in a timing trial. If true,
  /// runs with an observer do not skip collectives.
  bool collectives_are_local = false;
  bool tune = false;  ///< whether to measure the times of matmuls and convolutions (KernelTuner)
  /// Device::tuning_record() of an earlier run. If the record contains a description of this CPU,
  /// that description is used instead of machine_description(). Its times of kernels are used, too.
  std::map<std::string, std::string> tuning_record = {};
  /// A CPU to generate code for, with fewer instruction-set extensions than the host.
  struct BaselineCpu {
    TargetDescription description;  ///< description for the cost model
    std::string name;               ///< name of the CPU in LLVM (-mcpu)
  };
  std::optional<BaselineCpu> baseline_cpu = {};
};

/// Creates the Device that runs programs on the CPU.
std::unique_ptr<Device> cpu_device(const CpuDeviceOptions& options);

}  // namespace fluid
