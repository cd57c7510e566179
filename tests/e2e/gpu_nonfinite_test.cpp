// Repeats a step on a host that stands in for a GPU, to find its first non-finite value. If the
// search fails, training continues unchanged. The search uses no GPU memory.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "executor/executor.h"
#include "frontend/layers.h"
#include "frontend/optimizers.h"
#include "ops/functions.h"
#include "ops/operators.h"
#include "tests/support/errors.h"
#include "tests/support/gpu_training.h"
#include "tests/support/host_gpu_test.h"
#include "tests/support/lack.h"

namespace fluid::gpu_nonfinite_test {
namespace {

using fluid::testing::batch_of;
using fluid::testing::fail_host_gpu;
using fluid::testing::small_network;
using fluid::testing::stand_in;
using fluid::testing::state_of;

constexpr int64_t kSamples = 4, kWide = 16384;

class GpuNonFinite : public testing::HostGpuTest {};

void fill(Executor& exe, const std::string& name, float value) {
  Tensor tensor = exe.parameter(name);
  std::ranges::fill(tensor.as<float>(), value);
  exe.set_parameter(name, tensor);
}

/// After a step that overflowed, which was not applied.
Executor overflowed(int64_t micro_batches = 1) {
  Executor exe(
      small_network(), stand_in(),
      {.batch = kSamples, .micro_batches = micro_batches, .debug = {.check_finite = true}});
  exe.run(batch_of(kSamples));
  fill(exe, "fc0.w", 3e38F);
  exe.run(batch_of(kSamples, 1));
  return exe;
}

/// A failed search ends the step that it repeats, and undoes its writes.
TEST_F(GpuNonFinite, ASearchThatFailsLeavesTrainingAsItWas) {
  for (const int64_t micro_batches : {1, 2}) {
    Executor undisturbed = overflowed(micro_batches), exe = overflowed(micro_batches);
    const std::vector<std::byte> before = state_of(exe);
    for (const std::string function : {"launch", "allocate_host"}) {
      for (const int calls : {0, 5}) {
        fail_host_gpu(function, fluid_gpu_out_of_memory, calls);
        lack_of([&] { exe.first_nonfinite(batch_of(kSamples, 1)); });
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

/// Continuing would train on the state that the search left.
TEST_F(GpuNonFinite, NothingRunsWhereTheStateCannotBeAsItWas) {
  Executor exe = overflowed();
  constexpr int kFillsBefore = 1;  // the error words, as the step is run again
  fail_host_gpu("launch", fluid_gpu_out_of_memory);
  fail_host_gpu("fill", fluid_gpu_out_of_memory, kFillsBefore);
  const std::string told =
      error_of<DeviceError>([&] { exe.first_nonfinite(batch_of(kSamples, 1)); });
  EXPECT_TRUE(told.starts_with("launch was told to fail: ")) << told;
  EXPECT_EQ(error_of<DeviceError>([&] { exe.run(batch_of(kSamples)); }), told);
  EXPECT_EQ(error_of<DeviceError>([&] { exe.prepare({.train = {3}}); }), told);
}

/// The search computes the ops of a fused kernel one by one, in host memory.
TEST_F(GpuNonFinite, ASearchTakesNoMemoryOfTheGpu) {
  Program net("wide");
  const Value x = net.data("x", {kBatch, kWide}, f32);
  const Value loss = mean(exp(square(square(x)))) + mean(square(linear(x, {.units = 1})));
  net.output("loss", loss);
  minimize(loss, SGD{.lr = 0.01});
  Batch batch{.size = kSamples, .columns = {{"x", Tensor(f32, {kSamples, kWide})}}};
  for (float& v : batch.columns[0].second.as<float>()) v = 1;
  batch.columns[0].second.as<float>()[kWide + 5] = 1000;
  const auto found = [&](Executor exe) {
    exe.run(batch);
    return exe.first_nonfinite(batch);
  };
  const ExecutorOptions options{.batch = kSamples, .debug = {.check_finite = true}};
  const int64_t needed = Executor(net, stand_in(), options).memory().total;
  constexpr int64_t kWords = 64 << 10;  // error words, one page each
  static_assert(kWords < kSamples * kWide * 4, "no value of a kernel's fits beside the arena");
  fluid::testing::reset_host_gpu({.memory = needed + kWords});
  const std::string expected = found(Executor(net, cpu(), options));
  EXPECT_NE(expected.find("exp: element 16389 of "), std::string::npos) << expected;
  EXPECT_EQ(found(Executor(net, stand_in(), options)), expected);
}

}  // namespace
}  // namespace fluid::gpu_nonfinite_test
