#include "executor/host/host_cpu.h"

#include <gtest/gtest.h>

namespace fluid::host_cpu_test {
namespace {

using Features = std::vector<std::string>;

TEST(HostCpu, CountsCoresNotThreads) {
  const auto thread = [](int package, int core) {
    return "cpu family\t: 6\nmodel\t\t: 143\nmodel name\t: A CPU\nphysical id\t: " +
           std::to_string(package) + "\ncore id\t\t: " + std::to_string(core) +
           "\nflags\t\t: fpu avx512f avx2 avx512f2\n\n";
  };
  const HostCpu cpu = parse_cpuinfo(thread(0, 0) + thread(0, 1) + thread(0, 0) + thread(1, 0));
  EXPECT_EQ(cpu.name, "A CPU");
  EXPECT_EQ(cpu.model(), "A CPU, family 6, model 143");
  EXPECT_EQ(cpu.cores, 3);
  EXPECT_EQ(cpu.features, (Features{"avx2", "avx512f"}));
}

TEST(HostCpu, SaysNothingThatTheSystemDoesNot) {
  const HostCpu cpu = parse_cpuinfo("processor\t: 0\nFeatures\t: fp asimd\nbare line\nempty:\n");
  EXPECT_EQ(cpu.name, "");
  EXPECT_EQ(cpu.model(), "unknown");
  EXPECT_EQ(cpu.cores, 0);
  EXPECT_EQ(cpu.features, Features{"asimd"});
}

}  // namespace
}  // namespace fluid::host_cpu_test
