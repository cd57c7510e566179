// What the executor expects of the functions of a GPU, checked on the host that stands in for one.

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <numeric>

#include "executor/bytes_text.h"
#include "executor/gpu/gpu.h"
#include "tests/support/errors.h"
#include "tests/support/host_gpu.h"

namespace fluid {
namespace {

using fluid::testing::fail_host_gpu;
using fluid::testing::host_gpu_objects;
using fluid::testing::host_gpu_table;
using fluid::testing::HostPace;

constexpr int64_t kMemory = 64 << 20;
constexpr int64_t kElements = 1000, kBytes = kElements * 8;

/// x[i] = 3 x[i] + added, for i below n: the order of two of them shows.
void mix(const FluidGpuLaunch& launch) {
  const auto argument = [&](int i) {
    int64_t value = 0;
    std::memcpy(&value, launch.arguments[i], sizeof value);
    return value;
  };
  auto* x = reinterpret_cast<int64_t*>(argument(0));
  for (int64_t i = 0; i < std::min(argument(1), launch.groups * launch.threads); ++i) {
    x[i] = 3 * x[i] + argument(2);
  }
}

struct Kind {
  const char* name;
  HostPace pace;
  uint64_t seed = 0;
};

class GpuConformance : public ::testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    fluid::testing::reset_host_gpu(
        {.pace = GetParam().pace, .seed = GetParam().seed, .memory = kMemory});
    gpu_.emplace(host_gpu_table(), 0);
    module_ = gpu_->module(fluid::testing::host_gpu_text({{"mix", mix}}));
    mix_ = gpu_->kernel(module_, "mix");
    a_ = gpu_->stream();
    b_ = gpu_->stream();
  }
  void TearDown() override {
    a_ = {};
    b_ = {};
    module_ = {};
    gpu_.reset();
    EXPECT_EQ(host_gpu_objects(), 0);
  }

  void mix_in(const GpuStream& stream, const GpuMemory& memory, int64_t added) {
    auto* address = memory.data();
    int64_t n = kElements;
    const std::array<void*, 3> arguments = {&address, &n, &added};
    gpu_->launch(stream, mix_, (kElements + 127) / 128, 128, arguments);
  }
  std::vector<int64_t> read(const GpuMemory& memory) {
    const GpuMemory host = gpu_->allocate_host(kBytes);
    gpu_->copy(a_, host.data(), memory.data(), kBytes);
    gpu_->synchronize(a_);
    std::vector<int64_t> values(kElements);
    std::memcpy(values.data(), host.data(), kBytes);
    return values;
  }
  GpuMemory zeros() {
    GpuMemory memory = gpu_->allocate(kBytes);
    gpu_->fill(a_, memory.data(), 0, kBytes);
    gpu_->synchronize(a_);
    return memory;
  }
  static std::vector<int64_t> all(int64_t value) { return std::vector(kElements, value); }

  std::optional<Gpu> gpu_;
  GpuModule module_;
  FluidGpuKernel* mix_ = nullptr;
  GpuStream a_, b_;
};

TEST_P(GpuConformance, MemoryIsAlignedAndComesBack) {
  const int64_t before = gpu_->free_memory();
  {
    const GpuMemory first = gpu_->allocate(1), second = gpu_->allocate(4 << 20);
    for (const GpuMemory* memory : {&first, &second}) {
      EXPECT_EQ(reinterpret_cast<uintptr_t>(memory->data()) % 256, 0U);
    }
    EXPECT_LE(gpu_->free_memory(), before - (4 << 20));
  }
  EXPECT_EQ(gpu_->free_memory(), before);
}

TEST_P(GpuConformance, OutOfMemoryTakesNothing) {
  const int64_t free = gpu_->free_memory();
  const std::string text = bytes_text(static_cast<double>(free));
  EXPECT_EQ(error_of<DeviceError>([&] {
              gpu_->allocate(free + 1);
            }).find("the GPU has no " + text + " in one piece: " + text + " of "),
            0U);
  EXPECT_EQ(gpu_->free_memory(), free);
  EXPECT_EQ(read(zeros()), all(0));
}

TEST_P(GpuConformance, CopiesGoEveryWay) {
  const GpuMemory from = gpu_->allocate_host(kBytes), to = gpu_->allocate_host(kBytes);
  std::vector<int64_t> values(kElements);
  std::iota(values.begin(), values.end(), 7);
  std::memcpy(from.data(), values.data(), kBytes);
  const GpuMemory first = gpu_->allocate(kBytes), second = gpu_->allocate(kBytes);
  gpu_->copy(a_, first.data(), from.data(), kBytes);
  gpu_->copy(a_, second.data(), first.data(), kBytes);
  gpu_->copy(a_, to.data(), second.data(), kBytes);
  gpu_->synchronize(a_);
  EXPECT_EQ(std::memcmp(to.data(), values.data(), kBytes), 0);
}

TEST_P(GpuConformance, WorkOfAStreamRunsInItsOrder) {
  const GpuMemory x = zeros();
  for (const int64_t added : {1, 2, 3}) mix_in(a_, x, added);
  EXPECT_EQ(read(x), all((1 * 3 + 2) * 3 + 3));
}

TEST_P(GpuConformance, ALaunchKeepsItsArguments) {
  const GpuMemory x = zeros();
  mix_in(a_, x, 5);  // whose `added` is gone when the work runs
  EXPECT_EQ(read(x), all(5));
}

TEST_P(GpuConformance, StreamsWaitForEvents) {
  const GpuMemory x = zeros();
  const GpuEvent one = gpu_->event(), other = gpu_->event();
  for (int64_t added = 1; added < 4; ++added) {
    mix_in(a_, x, added);
    gpu_->record(one, a_);
    gpu_->wait(b_, one);
    mix_in(b_, x, -added);
    gpu_->record(other, b_);
    gpu_->wait(a_, other);
  }
  int64_t expected = 0;
  for (int64_t added = 1; added < 4; ++added) expected = 3 * (3 * expected + added) - added;
  EXPECT_EQ(read(x), all(expected));
}

TEST_P(GpuConformance, AnEventStandsForWhatWasQueuedWhenItWasNotedLast) {
  const GpuMemory x = zeros();
  const GpuEvent event = gpu_->event();
  gpu_->record(event, a_);
  gpu_->synchronize(event);
  EXPECT_TRUE(gpu_->is_done(event));
  mix_in(a_, x, 1);
  gpu_->record(event, a_);
  mix_in(a_, x, 1);  // not of the event
  gpu_->wait(b_, event);
  gpu_->synchronize(b_);
  EXPECT_TRUE(gpu_->is_done(event));
  EXPECT_EQ(read(x), all(4));
}

TEST_P(GpuConformance, NobodyWaitsForAnEventThatWasNeverNoted) {
  const GpuMemory x = zeros();
  const GpuEvent event = gpu_->event();
  EXPECT_TRUE(gpu_->is_done(event));
  gpu_->synchronize(event);
  gpu_->wait(a_, event);
  mix_in(a_, x, 1);
  EXPECT_EQ(read(x), all(1));
}

TEST_P(GpuConformance, EventsTellTheTime) {
  const GpuMemory x = zeros();
  const GpuEvent begin = gpu_->event(), end = gpu_->event();
  gpu_->record(begin, a_);
  mix_in(a_, x, 1);
  gpu_->record(end, a_);
  gpu_->synchronize(end);
  EXPECT_GT(gpu_->milliseconds(begin, end), 0);
}

TEST_P(GpuConformance, ACaptureRunsNothingAndAGraphAll) {
  const GpuMemory x = zeros();
  gpu_->begin_capture(a_);
  mix_in(a_, x, 1);
  mix_in(a_, x, 2);
  const GpuGraph graph = gpu_->end_capture(a_);
  EXPECT_EQ(read(x), all(0));
  gpu_->launch(graph, a_);
  EXPECT_EQ(read(x), all(5));
  gpu_->launch(graph, a_);
  gpu_->launch(graph, a_);
  EXPECT_EQ(read(x), all(((5 * 3 + 1) * 3 + 2) * 9 + 5));
}

TEST_P(GpuConformance, ACaptureTakesInStreamsThatWaitForIt) {
  const GpuMemory x = zeros(), y = zeros();
  const GpuEvent fork = gpu_->event(), join = gpu_->event();
  gpu_->begin_capture(a_);
  mix_in(a_, x, 1);
  gpu_->record(fork, a_);
  gpu_->wait(b_, fork);
  gpu_->copy(b_, y.data(), x.data(), kBytes);
  mix_in(b_, y, 2);
  gpu_->record(join, b_);
  gpu_->wait(a_, join);
  mix_in(a_, x, 3);
  const GpuGraph graph = gpu_->end_capture(a_);
  gpu_->launch(graph, a_);
  EXPECT_EQ(read(x), all(6));
  EXPECT_EQ(read(y), all(5));
  mix_in(b_, y, 1);  // b takes work again
  gpu_->synchronize(b_);
  EXPECT_EQ(read(y), all(16));
}

TEST_P(GpuConformance, AGraphComesAfterWhatWasQueuedBefore) {
  const GpuMemory x = zeros();
  gpu_->begin_capture(a_);
  mix_in(a_, x, 1);
  const GpuGraph graph = gpu_->end_capture(a_);
  mix_in(b_, x, 2);
  gpu_->launch(graph, b_);
  mix_in(b_, x, 3);
  gpu_->synchronize(b_);
  EXPECT_EQ(read(x), all((2 * 3 + 1) * 3 + 3));
}

TEST_P(GpuConformance, ACaptureWithLooseEndsIsMisused) {
  const GpuMemory x = zeros();
  const GpuEvent fork = gpu_->event();
  gpu_->begin_capture(a_);
  mix_in(a_, x, 1);
  gpu_->record(fork, a_);
  gpu_->wait(b_, fork);
  mix_in(b_, x, 2);
  EXPECT_THROW(gpu_->end_capture(a_), DeviceError);
  mix_in(a_, x, 7);
  EXPECT_EQ(read(x), all(7));
}

TEST_P(GpuConformance, WaitingDuringACaptureLosesIt) {
  const GpuMemory x = zeros();
  gpu_->begin_capture(a_);
  mix_in(a_, x, 1);
  EXPECT_THROW(gpu_->synchronize(a_), DeviceError);
  EXPECT_THROW(gpu_->end_capture(a_), DeviceError);
  mix_in(a_, x, 7);
  EXPECT_EQ(read(x), all(7));
}

TEST_P(GpuConformance, AskingForMemoryDuringACaptureLosesIt) {
  const GpuMemory x = zeros();
  gpu_->begin_capture(a_);
  mix_in(a_, x, 1);
  EXPECT_THROW(gpu_->allocate(1), DeviceError);
  EXPECT_THROW(gpu_->end_capture(a_), DeviceError);
}

TEST_P(GpuConformance, ACaptureWaitsForNothingFromOutside) {
  const GpuEvent event = gpu_->event();
  gpu_->record(event, b_);
  gpu_->begin_capture(a_);
  EXPECT_THROW(gpu_->wait(a_, event), DeviceError);
  EXPECT_THROW(gpu_->end_capture(a_), DeviceError);
}

TEST_P(GpuConformance, CodeThatIsNoneIsRefused) {
  EXPECT_THROW(gpu_->module("no kernels"), DeviceError);
  EXPECT_THROW(gpu_->kernel(module_, "absent"), DeviceError);
  const GpuMemory x = zeros();
  mix_in(a_, x, 1);
  EXPECT_EQ(read(x), all(1));
}

TEST_P(GpuConformance, FailedWorkIsToldWhenItIsWaitedForAndEverAfter) {
  const GpuMemory x = zeros();
  const auto queue_and_wait = [&] {
    gpu_->copy(a_, x.data() + 8, x.data(), kBytes);  // beyond its end
    gpu_->synchronize(a_);
  };
  const std::string why = error_of<DeviceError>(queue_and_wait);
  EXPECT_EQ(why, "queued work failed: memory that was never given, or was returned, is touched");
  EXPECT_EQ(error_of<DeviceError>([&] { gpu_->synchronize(b_); }), why);
}

TEST_P(GpuConformance, ACallThatIsToldToFailDoes) {
  const GpuMemory x = zeros();
  fail_host_gpu("launch", fluid_gpu_failed, 1);
  mix_in(a_, x, 1);
  EXPECT_EQ(error_of<DeviceError>([&] { mix_in(a_, x, 2); }), "launch was told to fail");
  EXPECT_THROW(gpu_->synchronize(a_), DeviceError);
}

INSTANTIATE_TEST_SUITE_P(Host, GpuConformance,
                         ::testing::Values(Kind{"early", HostPace::early},
                                           Kind{"late", HostPace::late},
                                           Kind{"late_1", HostPace::late, 1},
                                           Kind{"random", HostPace::random},
                                           Kind{"random_1", HostPace::random, 1}),
                         [](const auto& info) { return std::string(info.param.name); });

/// Two streams write the same memory and neither waits: a test that relies on luck has to fail.
TEST(HostGpu, RunsWorkInAnyOrderThatNobodyForbids) {
  std::set<int64_t> seen;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    fluid::testing::reset_host_gpu({.seed = seed});
    const Gpu gpu(host_gpu_table(), 0);
    const GpuStream a = gpu.stream(), b = gpu.stream();
    const GpuMemory x = gpu.allocate(1), host = gpu.allocate_host(1);
    gpu.fill(a, x.data(), 1, 1);
    gpu.fill(b, x.data(), 2, 1);
    gpu.synchronize(b);
    gpu.synchronize(a);
    gpu.copy(a, host.data(), x.data(), 1);
    gpu.synchronize(a);
    seen.insert(static_cast<int64_t>(*host.data()));
  }
  EXPECT_EQ(seen, (std::set<int64_t>{1, 2}));
}

TEST(HostGpu, QueuedWorkIsNotDoneBeforeSomebodyWaits) {
  fluid::testing::reset_host_gpu({.pace = HostPace::late});
  const Gpu gpu(host_gpu_table(), 0);
  const GpuStream stream = gpu.stream();
  const GpuEvent event = gpu.event();
  gpu.record(event, stream);
  EXPECT_FALSE(gpu.is_done(event));
  gpu.synchronize(event);
  EXPECT_TRUE(gpu.is_done(event));
}

TEST(HostGpuDeathTest, NobodyElseTouchesItsMemory) {
  fluid::testing::reset_host_gpu({});
  const Gpu gpu(host_gpu_table(), 0);
  const GpuMemory x = gpu.allocate(1);
  EXPECT_DEATH(*x.data() = std::byte{1}, "");
}

}  // namespace
}  // namespace fluid
