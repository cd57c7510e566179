#include "executor/places/place_machine.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "executor/device/bytes_text.h"

namespace fluid::place_machine_test {
namespace {

TEST(PlaceMachine, HasTheMemoryOfTheMachine) {
  const MemoryLimit limit = memory_limit_of(cpu());
  EXPECT_EQ(limit.bytes, int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE));
  EXPECT_EQ(limit.text, "this machine has " + bytes_text(static_cast<double>(limit.bytes)));
  EXPECT_FALSE(limit.set_by_user);
}

/// Runs on the machine of a made-up library, in a process that has not loaded a GPU library before.
TEST(PlaceMachineDeathTest, HasTheMemoryOfTheGpuWhateverIsFree) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto say = [] {
    setenv("FLUID_GPU_LIBRARY", FLUID_BINARY_DIR "/gpu_libraries/three_gpus.so", 1);
    const MemoryLimit limit = memory_limit_of(cuda(0));
    std::fprintf(stderr, "%s: %lld%s", limit.text.c_str(),
                 static_cast<long long>(limit.bytes >> 30), limit.set_by_user ? ", asked" : "");
    std::_Exit(0);
  };
  EXPECT_EXIT(say(), ::testing::ExitedWithCode(0),
              "^cuda:0 has 80.00 GiB, of which 79.00 GiB are free: 80$");
}

}  // namespace
}  // namespace fluid::place_machine_test
