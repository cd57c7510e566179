// Memory, streams, events, captures and code of a GPU.

#include "tests/conformance/gpu_conformance.h"

#include <array>
#include <cstring>
#include <numeric>

#include "executor/device/bytes_text.h"
#include "tests/support/errors.h"

namespace fluid::testing {
namespace {

constexpr int64_t kMuch = 32 << 20;

constexpr std::string_view kMix = R"(.version 7.0
.target sm_80
.address_size 64
.visible .entry mix(.param .u64 x, .param .u64 elements, .param .u64 added)
.reqntid 128
{
  .reg .pred %p<2>;
  .reg .b32 %r<5>;
  .reg .b64 %rd<10>;
  ld.param.u64 %rd1, [x];
  ld.param.u64 %rd2, [elements];
  ld.param.u64 %rd3, [added];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.s32 %r4, %r1, %r2, %r3;
  cvt.u64.u32 %rd4, %r4;
  setp.ge.s64 %p1, %rd4, %rd2;
  @%p1 bra $END;
  cvta.to.global.u64 %rd5, %rd1;
  shl.b64 %rd6, %rd4, 3;
  add.s64 %rd7, %rd5, %rd6;
  ld.global.u64 %rd8, [%rd7];
  mad.lo.s64 %rd9, %rd8, 3, %rd3;
  st.global.u64 [%rd7], %rd9;
$END:
  ret;
}
)";

}  // namespace

void GpuConformance::SetUp() {
  OnGpuUnderTest::SetUp();
  if (IsSkipped()) return;
  module_ = gpu_->load_module(gpu_->assemble(kMix));
  mix_ = gpu_->kernel(module_, "mix");
}

void GpuConformance::mix_in(const GpuStream& stream, const GpuMemory& memory, int64_t added) {
  auto* address = memory.data();
  int64_t n = kElements;
  const std::array<void*, 3> arguments = {&address, &n, &added};
  gpu_->launch(stream, mix_, (kElements + 127) / 128, 128, arguments);
}

std::vector<int64_t> GpuConformance::read(const GpuMemory& memory) {
  const GpuMemory host = gpu_->allocate_host(kBytes);
  gpu_->copy(a_, host.data(), memory.data(), kBytes);
  gpu_->synchronize(a_);
  std::vector<int64_t> values(kElements);
  std::memcpy(values.data(), host.data(), kBytes);
  return values;
}

GpuMemory GpuConformance::zeros() {
  GpuMemory memory = gpu_->allocate(kBytes);
  gpu_->fill(a_, memory.data(), 0, kBytes);
  gpu_->synchronize(a_);
  return memory;
}

TEST_P(GpuConformance, MemoryIsAlignedAndComesBack) {
  const int64_t before = gpu_->memory_info().first;
  {
    const GpuMemory first = gpu_->allocate(1), second = gpu_->allocate(kMuch);
    for (const GpuMemory* memory : {&first, &second}) {
      EXPECT_EQ(reinterpret_cast<uintptr_t>(memory->data()) % 256, 0U);
    }
    EXPECT_LE(gpu_->memory_info().first, before - kMuch);
  }
  if (GetParam().is_host) {
    EXPECT_EQ(gpu_->memory_info().first, before);
  } else {
    EXPECT_GT(gpu_->memory_info().first, before - kMuch) << "drivers keep some for the next";
  }
}

TEST_P(GpuConformance, OutOfMemoryTakesNothing) {
  const int64_t free = gpu_->memory_info().first;
  const std::string text = bytes_text(static_cast<double>(free));
  EXPECT_EQ(error_of<DeviceError>([&] {
              gpu_->allocate(free + 1);
            }).find("the GPU has no " + text + " in one contiguous block: "),
            0U);
  EXPECT_GT(gpu_->memory_info().first, free - kMuch);
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
  const GpuEvent one = gpu_->create_event(), other = gpu_->create_event();
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
  const GpuEvent event = gpu_->create_event();
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
  const GpuEvent event = gpu_->create_event();
  EXPECT_TRUE(gpu_->is_done(event));
  gpu_->synchronize(event);
  gpu_->wait(a_, event);
  mix_in(a_, x, 1);
  EXPECT_EQ(read(x), all(1));
}

TEST_P(GpuConformance, EventsTellTheTime) {
  const GpuMemory x = zeros();
  const GpuEvent begin = timer(), end = timer();
  gpu_->record(begin, a_);
  mix_in(a_, x, 1);
  gpu_->record(end, a_);
  gpu_->synchronize(end);
  EXPECT_GT(gpu_->milliseconds(begin, end), 0);
}

TEST_P(GpuConformance, AnEventThatOrdersTellsNoTime) {
  const GpuEvent begin = timer(), end = gpu_->create_event();
  gpu_->record(begin, a_);
  gpu_->record(end, a_);
  gpu_->synchronize(end);
  EXPECT_THROW(gpu_->milliseconds(begin, end), DeviceError);
  EXPECT_THROW(gpu_->milliseconds(end, begin), DeviceError);
}

TEST_P(GpuConformance, NoStreamWaitsForAnEventThatTellsTheTime) {
  const GpuEvent event = timer();
  gpu_->record(event, a_);
  EXPECT_THROW(gpu_->wait(b_, event), DeviceError);
  gpu_->begin_capture(a_);
  gpu_->record(event, a_);
  EXPECT_THROW(gpu_->wait(b_, event), DeviceError);
  EXPECT_THROW(gpu_->end_capture(a_), DeviceError);
}

/// Each event gives its time in the last launch of the graph.
TEST_P(GpuConformance, EventsTellTheTimesOfAGraphsWork) {
  const GpuMemory x = zeros(), y = zeros();
  const GpuEvent fork = gpu_->create_event(), join = gpu_->create_event();
  const GpuEvent first = timer(), forked = timer(), beside = timer(), last = timer();
  const GpuGraph graph = gpu_->capture(a_, [&] {
    gpu_->record(first, a_);
    mix_in(a_, x, 1);
    gpu_->record(fork, a_);
    gpu_->wait(b_, fork);
    gpu_->record(forked, b_);
    mix_in(b_, y, 2);
    gpu_->record(beside, b_);
    gpu_->record(join, b_);
    mix_in(a_, x, 3);
    gpu_->wait(a_, join);
    gpu_->record(last, a_);
  });
  for (int launch = 1; launch <= 2; ++launch) {
    const GpuEvent before = timer(), after = timer();
    gpu_->record(before, a_);
    gpu_->launch(graph, a_);
    gpu_->record(after, a_);
    gpu_->synchronize(after);
    EXPECT_GE(gpu_->milliseconds(before, first), 0) << launch;
    EXPECT_GT(gpu_->milliseconds(first, forked), 0) << launch;
    EXPECT_GT(gpu_->milliseconds(forked, beside), 0) << launch;
    EXPECT_GE(gpu_->milliseconds(beside, last), 0) << launch;
    EXPECT_GE(gpu_->milliseconds(last, after), 0) << launch;
  }
  EXPECT_EQ(read(x), all((6 * 3 + 1) * 3 + 3));
  EXPECT_EQ(read(y), all(8));
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
  const GpuEvent fork = gpu_->create_event(), join = gpu_->create_event();
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
  const GpuEvent fork = gpu_->create_event();
  gpu_->begin_capture(a_);
  mix_in(a_, x, 1);
  gpu_->record(fork, a_);
  gpu_->wait(b_, fork);
  mix_in(b_, x, 2);
  EXPECT_THROW(gpu_->end_capture(a_), DeviceError);
  mix_in(a_, x, 7);
  EXPECT_EQ(read(x), all(7));
}

TEST_P(GpuConformance, ACaptureThatIsGivenUpLeavesNothing) {
  const GpuMemory x = zeros();
  const auto queue = [&] {
    mix_in(a_, x, 1);
    throw InternalError("as asked");
  };
  EXPECT_THROW(gpu_->capture(a_, queue), InternalError);
  mix_in(a_, x, 7);
  EXPECT_EQ(read(x), all(7));
  EXPECT_NE(gpu_->allocate(64).data(), nullptr);
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
  const GpuEvent event = gpu_->create_event();
  gpu_->record(event, b_);
  gpu_->begin_capture(a_);
  EXPECT_THROW(gpu_->wait(a_, event), DeviceError);
  EXPECT_THROW(gpu_->end_capture(a_), DeviceError);
}

TEST_P(GpuConformance, CodeThatIsNoneIsRejected) {
  EXPECT_THROW(gpu_->load_module("no kernels"), DeviceError);
  EXPECT_THROW(gpu_->kernel(module_, "absent"), DeviceError);
  const GpuMemory x = zeros();
  mix_in(a_, x, 1);
  EXPECT_EQ(read(x), all(1));
}

}  // namespace fluid::testing
