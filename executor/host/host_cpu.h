#pragma once

#include <string>
#include <vector>

namespace fluid {

/// Information about a CPU for people. The cost model uses TargetDescription.
struct HostCpu {
  std::string name;                   ///< "" if unknown
  int cores = 0;                      ///< physical cores; 0: unknown
  std::vector<std::string> features;  ///< instruction set features that kernels may use
};

/// Parses the text of /proc/cpuinfo. host_cpu() reads this machine's file.
HostCpu cpu_of(const std::string& cpuinfo);
HostCpu host_cpu();

}  // namespace fluid
