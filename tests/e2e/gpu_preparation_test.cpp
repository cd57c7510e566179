// Steps that cannot be prepared, on the host that stands in for a GPU: what was there goes on.

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <optional>
#include <string>

#include "executor/executor.h"
#include "ir/error.h"
#include "tests/support/errors.h"
#include "tests/support/gpu_training.h"
#include "tests/support/host_gpu_test.h"

namespace fluid {
namespace {

using fluid::testing::batch_of;
using fluid::testing::fail_host_gpu;
using fluid::testing::small_network;
using fluid::testing::stand_in;
using fluid::testing::state_of;

constexpr int64_t kBatch = 4;

/// Calls `prepare` with a function of the GPU failing for want of memory, at its first call, then
/// later and later, until none fails; `failed` after each failure. How many there were.
int while_failing(const std::string& function, const std::function<void()>& prepare,
                  const std::function<void()>& failed) {
  for (int failures = 0, calls = 0; failures < 20; ++failures, calls = 3 * calls + 1) {
    fail_host_gpu(function, fluid_gpu_out_of_memory, calls);
    try {
      prepare();
      fail_host_gpu(function, fluid_gpu_out_of_memory, std::numeric_limits<int>::max());
      return failures;
    } catch (const DeviceError&) {
      failed();
    }
  }
  throw InternalError("it fails whatever " + function + " does");
}

class GpuPreparation : public testing::HostGpuTest,
                       public ::testing::WithParamInterface<std::string> {};

/// A step in the memory there is, and one that needs more.
TEST_P(GpuPreparation, ThatFailsLeavesTheStepsThereWere) {
  int failures = 0;
  for (const int64_t other : {2, 64}) {
    Executor undisturbed(small_network(), stand_in(), {.batch = kBatch});
    Executor exe(small_network(), stand_in(), {.batch = kBatch});
    const int64_t bytes = exe.memory().total;
    int step = 0;
    const auto both_go_on = [&] {
      const Batch samples = batch_of(kBatch, step++);
      EXPECT_EQ(exe.run(samples)["loss"].item(), undisturbed.run(samples)["loss"].item());
    };
    both_go_on();
    failures += while_failing(
        GetParam(), [&] { exe.prepare({.train = {other}}); },
        [&] {
          EXPECT_GE(exe.memory().total, bytes);
          both_go_on();
        });
    undisturbed.prepare({.train = {other}});
    EXPECT_EQ(exe.run(batch_of(other))["loss"].item(),
              undisturbed.run(batch_of(other))["loss"].item());
    both_go_on();
    EXPECT_EQ(state_of(exe), state_of(undisturbed));
  }
  EXPECT_GT(failures, 0);
}

/// The first one also fills the variables, or the next call does.
TEST_P(GpuPreparation, TheFirstOneMayFail) {
  Executor undisturbed(small_network(), stand_in(), {.batch = kBatch});
  const double expected = undisturbed.run(batch_of(kBatch))["loss"].item();
  std::optional<Executor> exe;
  const auto anew = [&] { exe.emplace(small_network(), stand_in(), ExecutorOptions()); };
  anew();
  const int failures = while_failing(
      GetParam(), [&] { exe->prepare({.train = {kBatch}}); },
      [&] {
        double loss = 0;
        try {
          loss = exe->run(batch_of(kBatch))["loss"].item();
        } catch (const UserError&) {  // no step was prepared
          exe->prepare({.train = {kBatch}});
          loss = exe->run(batch_of(kBatch))["loss"].item();
        }
        EXPECT_EQ(loss, expected);
        anew();
      });
  EXPECT_GT(failures, 0);
}

INSTANTIATE_TEST_SUITE_P(Function, GpuPreparation,
                         ::testing::Values("allocate", "allocate_host", "copy", "fill", "launch",
                                           "capture_begin", "graph_create", "stream_synchronize"),
                         [](const auto& info) { return info.param; });

class GpuPreparations : public testing::HostGpuTest {};

TEST_F(GpuPreparations, WithoutMemoryForMoreLeavesTheStepsThereWere) {
  Executor exe(small_network(), stand_in(), {.batch = kBatch});
  const int64_t bytes = exe.memory().total;
  exe.run(batch_of(kBatch));
  const std::vector<std::byte> before = state_of(exe);
  const std::string why =
      error_of<DeviceError>([&] { exe.prepare({.train = {int64_t{1} << 22}}); });
  EXPECT_NE(why.find("take a smaller batch, micro-batches or mixed precision"), std::string::npos)
      << why;
  EXPECT_EQ(exe.memory().total, bytes);
  EXPECT_EQ(state_of(exe), before);
  exe.run(batch_of(kBatch, 1)).wait();
  EXPECT_NE(state_of(exe), before);
}

/// Those that nobody has read yet are read after it.
TEST_F(GpuPreparations, ThatFailsLeavesOutputs) {
  Executor undisturbed(small_network(), stand_in(), {.batch = kBatch});
  undisturbed.run(batch_of(kBatch));
  const double expected = undisturbed.run(batch_of(kBatch, 1))["loss"].item();
  for (const std::string function : {"allocate", "graph_create"}) {
    Executor exe(small_network(), stand_in(), {.batch = kBatch});
    exe.run(batch_of(kBatch));
    const Outputs outputs = exe.run(batch_of(kBatch, 1));
    const int failures = while_failing(
        function, [&] { exe.prepare({.train = {64}}); },
        [&] { EXPECT_EQ(outputs["loss"].item(), expected); });
    EXPECT_GT(failures, 0);
    EXPECT_EQ(outputs["loss"].item(), expected);
  }
}

/// Nothing can be bound to it again.
TEST_F(GpuPreparations, OnAGpuThatFailedIsToldFromThenOn) {
  for (const int64_t other : {2, 64}) {
    Executor exe(small_network(), stand_in(), {.batch = kBatch});
    exe.run(batch_of(kBatch));
    fail_host_gpu("launch", fluid_gpu_failed);
    const std::string told =
        "launch was told to fail; the steps that there were cannot be bound to their memory again, "
        "so that none runs any more";
    EXPECT_EQ(error_of<DeviceError>([&] { exe.prepare({.train = {other}}); }), told);
    EXPECT_EQ(error_of<DeviceError>([&] { exe.prepare({.train = {other}}); }), told);
    EXPECT_EQ(error_of<DeviceError>([&] { exe.run(batch_of(kBatch)); }), told);
  }
}

}  // namespace
}  // namespace fluid
