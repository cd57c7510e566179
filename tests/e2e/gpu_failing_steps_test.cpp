// Single failing calls that leave the GPU usable, on a host that stands in for a GPU: training can
// continue, on the data that it is given.

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "tests/support/errors.h"
#include "tests/support/gpu_training.h"
#include "tests/support/host_gpu_test.h"

namespace fluid::gpu_failing_steps_test {
namespace {

using fluid::testing::batch_of;
using fluid::testing::fail_host_gpu;
using fluid::testing::small_network;
using fluid::testing::stand_in;
using fluid::testing::state_of;

constexpr int64_t kSamples = 4;
constexpr int kNever = std::numeric_limits<int>::max();

Batch bad_batch() {
  Batch bad = batch_of(kSamples, 1);
  bad.columns[1].second.as<int64_t>()[3] = 3;
  return bad;
}

/// Returns the message that the call throws; "" if it throws nothing.
template <class F>
std::string thrown(F call) {
  try {
    call();
    return "";
  } catch (const std::exception& e) {
    return e.what();
  }
}

class GpuFailingSteps : public testing::HostGpuPaceTest {};

/// The step after a rejected step is applied, even if the rejection has not been reported.
TEST_P(GpuFailingSteps, HoldUpNoneThatComeAfterOneThatWasRejected) {
  Executor exe(small_network(), stand_in(), {.batch = kSamples});
  exe.run(batch_of(kSamples)).wait();
  for (const std::string function : {"copy", "fill", "graph_launch", "event_record", "stream_wait",
                                     "event_synchronize", "stream_synchronize"}) {
    int told = 0;
    for (int calls = 0; calls < 3; ++calls) {
      SCOPED_TRACE(function + " " + std::to_string(calls));
      fail_host_gpu(function, fluid_gpu_invalid_usage, calls);
      const std::string failure = function + " was told to fail";
      told += thrown([&] { exe.run(bad_batch()); }) == failure;
      for (int again = 0; again < 2; ++again) {
        told += thrown([&] { exe.run(batch_of(kSamples, 2)); }) == failure;
        told += thrown([&] { exe.parameter("fc0.w"); }) == failure;
      }
      fail_host_gpu(function, fluid_gpu_invalid_usage, kNever);
      thrown([&] { exe.parameter("fc0.w"); });  // reports any pending error
      const std::vector<std::byte> before = state_of(exe);
      const OutputViews outputs = exe.run(batch_of(kSamples, 3));
      EXPECT_NE(state_of(exe), before);
      outputs.wait();
    }
    EXPECT_GT(told, 0) << function << " never failed";
  }
}

TEST_P(GpuFailingSteps, AreNotAppliedWhereTheyAreRejected) {
  Executor exe(small_network(), stand_in(), {.batch = kSamples});
  Executor undisturbed(small_network(), stand_in(), {.batch = kSamples});
  const auto expect_equal_after_a_step = [&] {
    for (Executor* each : {&exe, &undisturbed}) each->run(batch_of(kSamples)).wait();
    EXPECT_EQ(state_of(exe), state_of(undisturbed));
  };
  exe.run(bad_batch());
  fail_host_gpu("event_synchronize", fluid_gpu_invalid_usage);
  EXPECT_TRUE(states(error_of<DeviceError>([&] { exe.parameter("fc0.w"); }),
                     "event_synchronize was told to fail"));
  expect_equal_after_a_step();
  exe.run(bad_batch());
  expect_user_error([&] { exe.parameter("fc0.w"); }, "the step was not applied");
  fail_host_gpu("fill", fluid_gpu_invalid_usage);
  EXPECT_TRUE(
      states(error_of<DeviceError>([&] { exe.run(batch_of(kSamples)); }), "fill was told to fail"));
  expect_equal_after_a_step();
}

/// A slot that was to be filled with a batch is not taken to hold it.
TEST_P(GpuFailingSteps, GetTheirFeedsWhenTheyAreRunAgain) {
  Executor exe(small_network(), stand_in(), {.batch = kSamples});
  exe.prepare({.eval = {kSamples}});
  for (const std::string function : {"copy", "stream_wait"}) {
    exe.eval(batch_of(kSamples, 5)).wait();
    exe.eval(batch_of(kSamples, 6)).wait();
    const double expected = exe.eval(batch_of(kSamples, 7))["loss"].item();
    exe.eval(batch_of(kSamples, 8)).wait();
    exe.eval(batch_of(kSamples, 9)).wait();
    Batch batch = batch_of(kSamples, 7);
    batch.id = 22;
    fail_host_gpu(function, fluid_gpu_invalid_usage);
    EXPECT_TRUE(
        states(error_of<DeviceError>([&] { exe.eval(batch); }), function + " was told to fail"));
    EXPECT_EQ(exe.eval(batch)["loss"].item(), expected) << function;
    EXPECT_EQ(exe.eval(batch)["loss"].item(), expected) << function << ", held";
  }
}

INSTANTIATE_TEST_SUITE_P(Pace, GpuFailingSteps, testing::kPaces, testing::name_of);
INSTANTIATE_TEST_SUITE_P(Long, GpuFailingSteps, ::testing::Values(testing::kEarly),
                         testing::name_of);

}  // namespace
}  // namespace fluid::gpu_failing_steps_test
