#pragma once

#include <string>
#include <vector>

namespace fluid {

/// Description of a CPU for display. The cost model uses TargetDescription instead.
struct HostCpu {
  std::string name;  ///< model name; "" if unknown
  /// Family and model number, such as "family 25, model 17", because CPU generations may share a
  /// model name; "" if unknown.
  std::string generation;
  int cores = 0;                      ///< number of physical cores; 0 if unknown
  std::vector<std::string> features;  ///< instruction set extensions that kernels may use

  std::string model() const;  ///< `name` and `generation`; "unknown" if both are unknown
};

/// parse_cpuinfo() describes the CPU of a given /proc/cpuinfo text. host_cpu() describes the CPU of
/// this machine.
HostCpu parse_cpuinfo(const std::string& cpuinfo);
HostCpu host_cpu();

}  // namespace fluid
