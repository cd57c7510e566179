// Failed preparations on a host that stands in for a GPU: prepared steps still run.

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <string>

#include "executor/executor.h"
#include "frontend/layers.h"
#include "frontend/optimizers.h"
#include "ir/error.h"
#include "ops/functions.h"
#include "tests/support/errors.h"
#include "tests/support/gpu_training.h"
#include "tests/support/host_gpu_test.h"

namespace fluid::gpu_preparation_test {
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
                                           "capture_begin", "capture_end", "graph_create",
                                           "stream_synchronize"),
                         [](const auto& info) { return info.param; });

/// A dense layer behind dropout, whose learning rate warms up.
Program dropped() {
  Program net("dropped");
  const Value x = net.data("x", {fluid::kBatch, 3}, f32);
  const Value loss = mean(square(linear(dropout(x, {.p = 0.25}), {.units = 5})));
  net.output("loss", loss);
  minimize(loss, Momentum{.lr = 0.05}, {.schedule = Cosine{.steps = 60, .warmup = 4}});
  return net;
}

Batch samples(int64_t number) {
  Tensor x(f32, {kBatch, 3});
  for (int64_t i = 0; i < x.numel(); ++i) {
    x.as<float>()[static_cast<size_t>(i)] = 1 + std::sin(static_cast<float>(i + number));
  }
  return {.size = kBatch, .columns = {{"x", x}}};
}

class GpuPreparations : public testing::HostGpuTest {};

TEST_F(GpuPreparations, WithoutMemoryForMoreLeavesTheStepsThereWere) {
  Executor exe(small_network(), stand_in(), {.batch = kBatch});
  const int64_t bytes = exe.memory().total;
  exe.run(batch_of(kBatch));
  const std::vector<std::byte> before = state_of(exe);
  const std::string why =
      error_of<DeviceError>([&] { exe.prepare({.train = {int64_t{1} << 22}}); });
  EXPECT_TRUE(states(why, "take a smaller batch, micro-batches or mixed precision")) << why;
  EXPECT_EQ(exe.memory().total, bytes);
  EXPECT_EQ(state_of(exe), before);
  exe.run(batch_of(kBatch, 1)).wait();
  EXPECT_NE(state_of(exe), before);
}

/// The seed and half-precision weights are written after the steps are prepared. If a write fails,
/// the next call repeats it.
TEST_F(GpuPreparations, ThatFailAtAnyCopyAreMadeUpFor) {
  const ExecutorOptions options{.seed = 7, .precision = {.amp = AmpOptions{.level = AmpLevel::o2}}};
  const auto loss = [](Executor& exe) { return exe.run(samples(0))["loss"].item(); };
  Executor undisturbed(dropped(), stand_in(), options);
  undisturbed.prepare({.train = {kBatch}});
  const double expected = loss(undisturbed);
  bool failed = true;
  int calls = 0;
  for (; failed; ++calls) {
    Executor exe(dropped(), stand_in(), options);
    fail_host_gpu("copy", fluid_gpu_out_of_memory, calls);
    try {
      exe.prepare({.train = {kBatch}});
      failed = false;
    } catch (const DeviceError&) {
    }
    fail_host_gpu("copy", fluid_gpu_out_of_memory, std::numeric_limits<int>::max());
    exe.prepare({.train = {kBatch}});
    EXPECT_EQ(loss(exe), expected) << calls;
  }
  EXPECT_GT(calls, 3);
}

/// Growing the arena keeps the values that steps have copied to the host, even those of a step in
/// flight.
TEST_F(GpuPreparations, ThatLetTheArenaGrowKeepWhatStepsTold) {
  Executor exe(dropped(), stand_in(), {.batch = kBatch});
  exe.run(samples(0));
  const OutputViews before = exe.run(samples(1));
  const double rate = before.learning_rate().value();
  const OutputViews last = exe.run(samples(2));
  const int64_t bytes = exe.memory().total;
  exe.prepare({.train = {256}});
  ASSERT_GT(exe.memory().total, bytes);
  EXPECT_EQ(before.learning_rate(), rate);
  EXPECT_GT(last.learning_rate().value(), rate) << "it warms up";
}

/// Outputs that were not read before a failed preparation can still be read.
TEST_F(GpuPreparations, ThatFailsLeavesOutputs) {
  Executor undisturbed(small_network(), stand_in(), {.batch = kBatch});
  undisturbed.run(batch_of(kBatch));
  const double expected = undisturbed.run(batch_of(kBatch, 1))["loss"].item();
  for (const std::string function : {"allocate", "graph_create"}) {
    Executor exe(small_network(), stand_in(), {.batch = kBatch});
    exe.run(batch_of(kBatch));
    const OutputViews outputs = exe.run(batch_of(kBatch, 1));
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
        "launch was told to fail; the prepared steps cannot be bound to their memory again, so no "
        "step can run";
    EXPECT_EQ(error_of<DeviceError>([&] { exe.prepare({.train = {other}}); }), told);
    EXPECT_EQ(error_of<DeviceError>([&] { exe.prepare({.train = {other}}); }), told);
    EXPECT_EQ(error_of<DeviceError>([&] { exe.run(batch_of(kBatch)); }), told);
  }
}

}  // namespace
}  // namespace fluid::gpu_preparation_test
