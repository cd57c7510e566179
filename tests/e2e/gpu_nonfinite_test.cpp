// A step on the host that stands in for a GPU is run again to find where its numbers stopped being
// finite: where that fails training goes on as before.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "executor/executor.h"
#include "tests/support/errors.h"
#include "tests/support/gpu_training.h"
#include "tests/support/host_gpu.h"

namespace fluid {
namespace {

using fluid::testing::batch_of;
using fluid::testing::fail_host_gpu;
using fluid::testing::host_gpu_objects;
using fluid::testing::small_network;
using fluid::testing::stand_in;
using fluid::testing::state_of;

constexpr int64_t kSamples = 4;

class GpuNonFinite : public ::testing::Test {
 protected:
  void SetUp() override { fluid::testing::reset_host_gpu({}); }
  void TearDown() override { EXPECT_EQ(host_gpu_objects(), 0); }
};

void fill(Executor& exe, const std::string& name, float value) {
  Tensor tensor = exe.parameter(name);
  std::ranges::fill(tensor.as<float>(), value);
  exe.set_parameter(name, tensor);
}

/// After a step that overflowed, which was not applied.
Executor overflowed(int64_t micro_batches = 1) {
  Executor exe(small_network(), stand_in(),
               {.batch = kSamples, .micro_batches = micro_batches, .check_finite = true});
  exe.run(batch_of(kSamples));
  fill(exe, "fc0.w", 3e38F);
  exe.run(batch_of(kSamples, 1));
  return exe;
}

/// What it ran again is over, and what that wrote is gone.
TEST_F(GpuNonFinite, ASearchThatFailsLeavesTrainingAsItWas) {
  for (const int64_t micro_batches : {1, 2}) {
    Executor undisturbed = overflowed(micro_batches), exe = overflowed(micro_batches);
    const std::vector<std::byte> before = state_of(exe);
    for (const std::string function : {"launch", "allocate_host"}) {
      for (const int calls : {0, 5}) {
        fail_host_gpu(function, fluid_gpu_out_of_memory, calls);
        EXPECT_EQ(error_of<DeviceError>([&] { exe.first_nonfinite(batch_of(kSamples, 1)); }),
                  function + " was told to fail");
        EXPECT_EQ(state_of(exe), before);
      }
    }
    for (Executor* each : {&exe, &undisturbed}) {
      fill(*each, "fc0.w", 0.01F);
      each->run(batch_of(kSamples, 2)).wait();
    }
    EXPECT_EQ(state_of(exe), state_of(undisturbed));
  }
}

/// Whoever went on would train on what the search left.
TEST_F(GpuNonFinite, NothingRunsWhereTheStateCannotBeAsItWas) {
  Executor exe = overflowed();
  constexpr int kFillsBefore = 1;  // the error words, as the step is run again
  fail_host_gpu("launch", fluid_gpu_out_of_memory);
  fail_host_gpu("fill", fluid_gpu_out_of_memory, kFillsBefore);
  const std::string told = "launch was told to fail";
  EXPECT_EQ(error_of<DeviceError>([&] { exe.first_nonfinite(batch_of(kSamples, 1)); }), told);
  EXPECT_EQ(error_of<DeviceError>([&] { exe.run(batch_of(kSamples)); }), told);
  EXPECT_EQ(error_of<DeviceError>([&] { exe.prepare({.train = {3}}); }), told);
}

}  // namespace
}  // namespace fluid
