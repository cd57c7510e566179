#pragma once

#include <string>
#include <vector>

namespace fluid {

/// What people want to know of a CPU; the cost model reads a TargetDescription.
struct HostCpu {
  std::string name;                   ///< "" where the system does not say
  int cores = 0;                      ///< without those that share one; 0: not known
  std::vector<std::string> features;  ///< of the instruction set, those that kernels may use
};

/// Of the text of /proc/cpuinfo, and of this machine.
HostCpu cpu_of(const std::string& cpuinfo);
HostCpu host_cpu();

}  // namespace fluid
