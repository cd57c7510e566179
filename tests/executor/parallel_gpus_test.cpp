// GPUs of several processes, which the host stands in for, as the executor makes them work
// together.

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <thread>

#include "executor/gpu/gpu_collectives.h"
#include "tests/support/errors.h"
#include "tests/support/host_gpu.h"
#include "tests/support/processes.h"

namespace fluid::parallel_gpus_test {
namespace {

using fluid::testing::host_gpu_objects;
using fluid::testing::host_gpu_table;
using fluid::testing::Ranks;
using std::chrono::milliseconds;

constexpr milliseconds kLong{15000}, kShort{1000};
constexpr int64_t kCount = 50;

/// A rank's GPU and what it needs to work with the others.
struct Rank {
  explicit Rank(const World& world, milliseconds timeout = kLong)
      : control(make_communicator(world, timeout)) {
    fluid::testing::reset_host_gpu({.seed = static_cast<uint64_t>(world.rank), .devices = 4});
    open = std::make_shared<const OpenGpu>(host_gpu_table(), world.rank);
    all.emplace(open, GpuPeers{world, control.get(), timeout, timeout});
    all->reserve(1);
    x = open->gpu.allocate(kCount * 8);
    host = open->gpu.allocate_host(kCount * 8);
    for (int64_t i = 0; i < kCount; ++i) values()[i] = static_cast<double>(world.rank * 100 + i);
    open->gpu.copy(open->stream, x.data(), host.data(), x.bytes());
    open->gpu.synchronize(open->stream);
  }

  double* values() const { return reinterpret_cast<double*>(host.data()); }
  void exchange(CollectiveKind kind) { all->start(0, {kCount, kind}, x.data(), f64); }
  /// Waits for the collective. Returns some elements of x.
  std::string finish() {
    all->stream_wait(1);
    open->gpu.copy(open->stream, host.data(), x.data(), x.bytes());
    all->synchronize();
    std::string text;
    for (const int64_t i : {int64_t{0}, int64_t{31}, int64_t{32}, kCount - 1}) {
      text += std::to_string(static_cast<int64_t>(values()[i])) + " ";
    }
    return text;
  }

  std::unique_ptr<Communicator> control;
  std::shared_ptr<const OpenGpu> open;
  std::optional<GpuCollectives> all;
  GpuMemory x, host;
};

/// The stream of rank 0 continues before rank 1 has joined the collective.
TEST(ParallelGpus, CollectivesRunBesideWhatDoesNotWaitForThem) {
  const std::vector<std::string> results =
      Ranks(2, [](const World& world) {
        Rank rank(world);
        int64_t word = 0;
        if (world.rank == 1) rank.control->broadcast(&word, sizeof word, 0);
        rank.all->begin_step();
        rank.exchange(CollectiveKind::all_reduce);
        rank.open->gpu.fill(rank.open->stream, rank.host.data(), 0, rank.host.bytes());
        if (world.rank == 0) {
          rank.open->gpu.synchronize(rank.open->stream);
          rank.control->broadcast(&word, sizeof word, 0);
        }
        return rank.finish();
      }).results();
  for (const std::string& result : results) EXPECT_EQ(result, "100 162 164 198 ");
}

/// As on the CPU: shares are whole lines of 32 elements, and those of others are 0.
TEST(ParallelGpus, ScatterAndGatherAsTheCpuDoes) {
  const auto make = [](CollectiveKind kind) {
    return Ranks(2,
                 [kind](const World& world) {
                   Rank rank(world);
                   rank.all->begin_step();
                   rank.exchange(kind);
                   return rank.finish();
                 })
        .results();
  };
  EXPECT_EQ(make(CollectiveKind::reduce_scatter),
            (std::vector<std::string>{"100 162 0 0 ", "0 0 164 198 "}));
  EXPECT_EQ(make(CollectiveKind::all_gather), std::vector<std::string>(2, "0 31 132 149 "));
}

TEST(ParallelGpus, BroadcastWhatTheFirstHas) {
  const std::vector<std::string> results = Ranks(3, [](const World& world) {
                                             Rank rank(world);
                                             rank.all->broadcast(rank.x.data(), rank.x.bytes());
                                             rank.all->reserve(1);
                                             rank.all->begin_step();
                                             rank.exchange(CollectiveKind::all_reduce);
                                             return rank.finish();
                                           }).results();
  for (const std::string& result : results) EXPECT_EQ(result, "0 93 96 147 ");
}

/// Runs `body` on rank 0 while rank 1 does not take part in its collectives. Expects that the error
/// that `body` returns names rank 1 and the operations that both ranks have entered, and that rank
/// 0 frees all objects.
void expect_reported_once(const std::function<std::string(Rank&)>& body) {
  Ranks ranks(2, [&body](const World& world) {
    std::string said;
    {
      Rank rank(world, kShort);
      if (world.rank == 1) {
        std::this_thread::sleep_for(4 * kShort);
        return std::string();
      }
      said = body(rank);
    }
    return said + (host_gpu_objects() == 0 ? "" : " and left objects open");
  });
  const std::string said = ranks.result(0);
  EXPECT_EQ(said.find("rank 0 cannot complete the GPUs' step "), 0U) << said;
  EXPECT_NE(said.find(": rank 1 is late: it has entered "), std::string::npos) << said;
  const std::string end = " collective operations, rank 0 ";
  EXPECT_NE(said.find(end), std::string::npos) << said;
  EXPECT_EQ(said.find_first_not_of("0123456789", said.find(end) + end.size()), std::string::npos)
      << said;
}

TEST(ParallelGpus, ARankThatStaysAwayIsNamed) {
  expect_reported_once([](Rank& rank) {
    rank.all->begin_step();
    rank.exchange(CollectiveKind::all_reduce);
    const std::string said = error_of<DeviceError>([&] { rank.finish(); });
    const bool again = error_of<DeviceError>([&] { rank.all->begin_step(); }) == said;
    return said + (again ? "" : ", then another");
  });
}

/// With two collectives in flight, the error names the first, and the second is not waited for.
TEST(ParallelGpus, TwoThatAreUnderWayEndAsOne) {
  expect_reported_once([](Rank& rank) {
    std::vector<PendingCollective> begun;
    std::vector<GpuEvent> ends;
    for (int i = 0; i < 2; ++i) {
      begun.push_back(rank.all->begin_step());
      rank.exchange(CollectiveKind::all_reduce);
      rank.all->stream_wait(1);
      rank.open->gpu.record(ends.emplace_back(rank.open->gpu.create_event()), rank.open->stream);
    }
    const std::string first =
        error_of<DeviceError>([&] { rank.all->synchronize(begun[0], ends[0]); });
    std::string said = first;
    if (first.find("step " + std::to_string(begun[0].sequence) + ": ") == std::string::npos) {
      said += ", of another";
    }
    const auto then = std::chrono::steady_clock::now();
    if (error_of<DeviceError>([&] { rank.all->synchronize(begun[1], ends[1]); }) != first) {
      said += ", then another";
    }
    if (std::chrono::steady_clock::now() - then > kShort / 2) said += ", late";
    return said;
  });
}

/// The collective functions do nothing.
TEST(ParallelGpus, SumsThatAreWrongFromTheStartAreTold) {
  fluid::testing::reset_host_gpu({.devices = 2});
  FluidGpuTable idle = host_gpu_table();
  idle.communicator_state = [](FluidGpuCommunicator*) { return fluid_gpu_ok; };
  idle.all_reduce = [](FluidGpuCommunicator*, FluidGpuStream*, void*, int64_t, FluidGpuDtype) {
    return fluid_gpu_ok;
  };
  const auto open = std::make_shared<const OpenGpu>(idle, 1);
  const auto control = make_communicator({}, kShort);
  World two;
  two.size = 2;
  EXPECT_TRUE(states(error_of<DeviceError>([&] {
                       GpuCollectives(open, {two, control.get(), kShort, kShort});
                     }),
                     "2 GPUs sum 2 ones to 1: they do not communicate correctly"));
}

}  // namespace
}  // namespace fluid::parallel_gpus_test
