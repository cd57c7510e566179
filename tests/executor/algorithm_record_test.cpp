// Tests which tasks and machines a recorded algorithm applies to.

#include "executor/gpu_libraries/algorithm_record.h"

#include <gtest/gtest.h>

#include <set>

namespace fluid::algorithm_record_test {
namespace {

/// A choice for one machine is not used on another.
TEST(MachineOf, TellsMachinesApart) {
  const FluidGpuDescription gpu = {.name = "gpu",
                                   .major = 9,
                                   .multiprocessors = 132,
                                   .memory_bus_bits = 5120,
                                   .clock_khz = 1'980'000,
                                   .memory_clock_khz = 2'619'000};
  const FluidGpuVersions versions = {
      .driver = 13000, .runtime = 12090, .blas = 120900, .dnn = 91300};
  std::set<std::string> machines = {gpu_fingerprint(gpu, versions)};
  const auto add_gpu = [&](auto change) {
    FluidGpuDescription other = gpu;
    change(other);
    EXPECT_TRUE(machines.insert(gpu_fingerprint(other, versions)).second)
        << gpu_fingerprint(other, versions);
  };
  add_gpu([](FluidGpuDescription& g) { g.name[0] = 'c'; });
  add_gpu([](FluidGpuDescription& g) { ++g.major; });
  add_gpu([](FluidGpuDescription& g) { ++g.minor; });
  add_gpu([](FluidGpuDescription& g) { ++g.multiprocessors; });
  add_gpu([](FluidGpuDescription& g) { ++g.clock_khz; });
  for (const auto library : {&FluidGpuVersions::driver, &FluidGpuVersions::runtime,
                             &FluidGpuVersions::blas, &FluidGpuVersions::dnn}) {
    FluidGpuVersions other = versions;
    ++(other.*library);
    EXPECT_TRUE(machines.insert(gpu_fingerprint(gpu, other)).second) << gpu_fingerprint(gpu, other);
  }
}

}  // namespace
}  // namespace fluid::algorithm_record_test
