// When the calls of a step on a GPU run, as its graph notes it.

#include "executor/gpu/gpu_timeline.h"

#include <gtest/gtest.h>

#include <array>

#include "tests/support/host_gpu.h"

namespace fluid::gpu_timeline_test {
namespace {

using fluid::testing::HostPace;

constexpr int64_t kPiece = 15'625;  ///< ns of the host's clock that a piece of work takes

class GpuTimelineTest : public ::testing::TestWithParam<HostPace> {
 protected:
  void SetUp() override {
    fluid::testing::reset_host_gpu({.pace = GetParam(), .seed = 7});
    gpu_ = std::make_shared<const OpenGpu>(fluid::testing::host_gpu_table(), 0);
    memory_ = gpu_->gpu.allocate(64);
  }
  void TearDown() override {
    memory_ = {};
    gpu_.reset();
    EXPECT_EQ(fluid::testing::host_gpu_objects(), 0);
  }
  void work(const GpuStream& stream, int pieces) const {
    for (int piece = 0; piece < pieces; ++piece) gpu_->gpu.fill(stream, memory_.data(), 1, 64);
  }

  std::shared_ptr<const OpenGpu> gpu_;
  GpuMemory memory_;
};

/// A call, a collective on its result, a call concurrent with the collective, a call that waits for
/// it, and a collective for which no call waits.
TEST_P(GpuTimelineTest, TellsWorkFromWaitsAndFromWhatGoesOnBeside) {
  const Gpu& gpu = gpu_->gpu;
  const std::array<CollectiveRole, 5> roles = {
      {{}, {.elements = 1}, {}, {.awaited_collectives = 1}, {.elements = 1}}};
  const GpuTimeline timeline(gpu_, roles);
  const GpuStream beside = gpu.create_stream();
  std::array<GpuEvent, 4> order;
  for (GpuEvent& event : order) event = gpu.create_event();
  const auto exchange = [&](size_t call, int pieces, const GpuEvent& fork, const GpuEvent& join) {
    gpu.record(fork, gpu_->stream);
    gpu.wait(beside, fork);
    gpu.record(timeline.collective_span(call).begin, beside);
    work(beside, pieces);
    gpu.record(timeline.collective_span(call).end, beside);
    gpu.record(join, beside);
  };
  const GpuGraph graph = gpu.capture(gpu_->stream, [&] {
    timeline.record_step_begin();
    work(gpu_->stream, 3);
    timeline.record_call_end(0);
    exchange(1, 5, order[0], order[1]);
    work(gpu_->stream, 1);
    timeline.record_call_end(2);
    gpu.wait(gpu_->stream, order[1]);
    timeline.record_wait_end(3);
    work(gpu_->stream, 2);
    timeline.record_call_end(3);
    exchange(4, 4, order[2], order[3]);
    gpu.wait(gpu_->stream, order[3]);
    timeline.record_step_end();
  });
  for (const int64_t begin : {1000, 7'000'000}) {
    gpu.launch(graph, gpu_->stream);
    gpu.synchronize(gpu_->stream);
    RunTimes times{.feeds = {}, .final_wait = {}, .calls = std::vector<CallTimes>(roles.size())};
    timeline.read_times(begin, times);
    const auto& calls = times.calls;
    // A mark is a piece of work, too.
    EXPECT_EQ(calls[0].call.begin, begin);
    EXPECT_EQ(calls[0].call.ns(), (3 + 1) * kPiece);
    EXPECT_GE(calls[1].collective.begin, calls[0].call.end);
    EXPECT_GE(calls[1].collective.ns(), (5 + 1) * kPiece);
    EXPECT_EQ(calls[2].call.begin, calls[0].call.end);
    EXPECT_EQ(calls[3].wait.begin, calls[2].call.end);
    EXPECT_GT(calls[3].wait.end, calls[1].collective.end);
    EXPECT_EQ(calls[3].call.begin, calls[3].wait.end);
    EXPECT_EQ(calls[3].call.ns(), (2 + 1) * kPiece);
    EXPECT_EQ(times.final_wait.begin, calls[3].call.end);
    EXPECT_GT(times.final_wait.end, calls[4].collective.end);
    EXPECT_EQ(calls[4].collective.ns(), (4 + 1) * kPiece);
    for (const size_t number : {1, 4}) EXPECT_EQ(calls[number].call.ns(), 0);
  }
}

/// Without collectives, no call waits for other processes.
TEST_P(GpuTimelineTest, HasNoWaitsWithoutCollectives) {
  const std::array<CollectiveRole, 2> roles = {};
  const GpuTimeline timeline(gpu_, roles);
  const GpuGraph graph = gpu_->gpu.capture(gpu_->stream, [&] {
    timeline.record_step_begin();
    for (size_t call = 0; call < roles.size(); ++call) {
      work(gpu_->stream, 1);
      timeline.record_call_end(call);
    }
    timeline.record_step_end();
  });
  gpu_->gpu.launch(graph, gpu_->stream);
  gpu_->gpu.synchronize(gpu_->stream);
  RunTimes times{.feeds = {}, .final_wait = {1, 2}, .calls = std::vector<CallTimes>(roles.size())};
  timeline.read_times(1000, times);
  EXPECT_EQ(times.final_wait.ns(), 0);
  for (const CallTimes& call : times.calls) {
    EXPECT_EQ(call.wait.ns(), 0);
    EXPECT_EQ(call.call.ns(), (1 + 1) * kPiece);
  }
}

INSTANTIATE_TEST_SUITE_P(Pace, GpuTimelineTest,
                         ::testing::Values(HostPace::early, HostPace::late, HostPace::random));

}  // namespace
}  // namespace fluid::gpu_timeline_test
