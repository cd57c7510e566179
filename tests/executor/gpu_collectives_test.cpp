// Tests the collective functions of a GPU backend, in processes whose host stands in for a GPU.

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <thread>

#include "executor/gpu_driver/gpu.h"
#include "ir/tensor.h"
#include "passes/bucket.h"
#include "tests/support/host_gpu_test.h"
#include "tests/support/processes.h"

namespace fluid::gpu_collectives_test {
namespace {

using fluid::testing::host_gpu_objects;
using fluid::testing::host_gpu_table;
using fluid::testing::HostPace;
using fluid::testing::Ranks;

constexpr int64_t kCounts[] = {1, 5, 64, 100, 1000};

/// A GPU of one of several processes, and its communicator with the others.
class Peer {
 public:
  Peer(const World& world, const FluidGpuUniqueId& meeting, HostPace pace = HostPace::late,
       int devices = 4)
      : table_(host_gpu_table()) {
    fluid::testing::reset_host_gpu(
        {.pace = pace, .seed = static_cast<uint64_t>(world.rank), .devices = devices});
    gpu_.emplace(table_, world.rank % devices);
    a_ = gpu_->create_stream();
    b_ = gpu_->create_stream();
    FluidGpuCommunicator* made = nullptr;
    check_gpu(table_,
              table_.communicator_create(gpu_->get(), &meeting, world.rank, world.size, &made));
    communicator_ = GpuCommunicator(table_, made);
  }

  FluidGpuCommunicator* communicator() const { return communicator_.get(); }
  const Gpu& gpu() const { return *gpu_; }
  /// Kernels run on stream a, collectives on stream b.
  const GpuStream& a() const { return a_; }
  const GpuStream& b() const { return b_; }

  /// Polls the state of the communicator for up to five seconds.
  FluidGpuResult state() const {
    return polled([&] { return table_.communicator_state(communicator()); }, 5000);
  }
  static FluidGpuResult polled(const std::function<FluidGpuResult()>& call, int ms) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(ms);
    FluidGpuResult result = call();
    while (result == fluid_gpu_not_ready && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
      result = call();
    }
    return result;
  }
  void wait_until_complete(FluidGpuResult begun) const {
    check_gpu(table_, begun);
    check_gpu(table_, state());
  }

  GpuMemory copied(const std::string& bytes) const {
    GpuMemory memory = gpu_->allocate(static_cast<int64_t>(bytes.size()));
    const GpuMemory host = gpu_->allocate_host(memory.bytes());
    std::memcpy(host.data(), bytes.data(), bytes.size());
    gpu_->copy(a_, memory.data(), host.data(), memory.bytes());
    gpu_->synchronize(a_);
    return memory;
  }
  std::string read(const GpuMemory& memory) const {
    const GpuMemory host = gpu_->allocate_host(memory.bytes());
    gpu_->copy(a_, host.data(), memory.data(), memory.bytes());
    gpu_->synchronize(a_);
    return {reinterpret_cast<const char*>(host.data()), static_cast<size_t>(memory.bytes())};
  }
  /// Makes later work on stream a wait for the work queued on b, or vice versa.
  void a_waits_for_b() const { join(a_, b_); }
  void b_waits_for_a() const { join(b_, a_); }

  std::string error() const { return table_.error(); }

 private:
  void join(const GpuStream& later, const GpuStream& first) const {
    const GpuEvent event = gpu_->create_event();
    gpu_->record(event, first);
    gpu_->wait(later, event);
  }

  const FluidGpuTable& table_;
  std::optional<Gpu> gpu_;
  GpuStream a_, b_;
  GpuCommunicator communicator_;
};

FluidGpuUniqueId new_unique_id() {
  FluidGpuUniqueId meeting = {};
  check_gpu(host_gpu_table(), host_gpu_table().unique_id(&meeting));
  return meeting;
}

/// Runs `body` as so many ranks, each with a GPU: what each returned.
std::vector<std::string> ranks(int size, const std::function<std::string(const Peer&, int)>& body,
                               HostPace pace = HostPace::late, int devices = 4) {
  fluid::testing::reset_host_gpu({});
  const FluidGpuUniqueId meeting = new_unique_id();
  return Ranks(size,
               [&](const World& world) {
                 std::string result;
                 {
                   const Peer peer(world, meeting, pace, devices);
                   result = body(peer, world.rank);
                 }
                 return result + (host_gpu_objects() == 0 ? "" : " and left objects open");
               })
      .results();
}

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

/// Small whole numbers, which every float adds up exactly.
double number(int rank, int64_t i) { return static_cast<double>((rank * 7 + i * 3) % 16); }

std::string floats(DType dtype, int64_t count, const std::function<double(int64_t)>& value) {
  Tensor t(dtype, {count});
  for (int64_t i = 0; i < count; ++i) {
    if (is_half_precision(dtype)) {
      static_cast<uint16_t*>(t.data())[i] = float_to_half(static_cast<float>(value(i)), dtype);
    } else if (dtype == f64) {
      t.as<double>()[static_cast<size_t>(i)] = value(i);
    } else {
      t.as<float>()[static_cast<size_t>(i)] = static_cast<float>(value(i));
    }
  }
  return {static_cast<const char*>(t.data()), static_cast<size_t>(t.bytes())};
}

class GpuCollectiveFunctions : public ::testing::TestWithParam<testing::TestedPace> {};

TEST_P(GpuCollectiveFunctions, AddUpEveryFloat) {
  const std::pair<FluidGpuDtype, DType> elements[] = {
      {fluid_gpu_f64, f64}, {fluid_gpu_f32, f32}, {fluid_gpu_f16, f16}, {fluid_gpu_bf16, bf16}};
  for (const int size : {1, 2, 3}) {
    for (const auto& [element, dtype] : elements) {
      std::string expected;
      for (const int64_t count : kCounts) {
        expected += floats(dtype, count, [size = size](int64_t i) {
          double sum = 0;
          for (int rank = 0; rank < size; ++rank) sum += number(rank, i);
          return sum;
        });
      }
      const auto sums = [element = element, dtype = dtype](const Peer& peer, int rank) {
        std::string all;
        peer.wait_until_complete(fluid_gpu_ok);
        for (const int64_t count : kCounts) {
          const GpuMemory x =
              peer.copied(floats(dtype, count, [&](int64_t i) { return number(rank, i); }));
          peer.wait_until_complete(host_gpu_table().all_reduce(peer.communicator(), peer.b().get(),
                                                               x.data(), count, element));
          peer.a_waits_for_b();
          all += peer.read(x);
        }
        return all;
      };
      for (const std::string& result : ranks(size, sums, GetParam().pace)) {
        EXPECT_TRUE(result == expected) << size << " ranks, " << name_of(dtype);
      }
    }
  }
}

TEST_P(GpuCollectiveFunctions, ScatterSumsAndGatherThem) {
  for (const int size : {1, 2, 3}) {
    const auto parts = [size](const Peer& peer, int rank) {
      peer.wait_until_complete(fluid_gpu_ok);
      for (const int64_t count : kCounts) {
        const int64_t share = bucket_shard(count, size, 0).size();
        std::vector<double> mine(static_cast<size_t>(count));
        for (int64_t i = 0; i < count; ++i) mine[static_cast<size_t>(i)] = number(rank, i);
        const GpuMemory x = peer.copied(bytes_of(mine));
        peer.wait_until_complete(host_gpu_table().reduce_scatter(
            peer.communicator(), peer.b().get(), x.data(), count, share, fluid_gpu_f64));
        peer.a_waits_for_b();
        const std::string scattered = peer.read(x);
        const BucketShard own = bucket_shard(count, size, rank);
        std::vector<double> sum(static_cast<size_t>(count));
        for (int64_t i = 0; i < count; ++i) {
          for (int r = 0; r < size; ++r) sum[static_cast<size_t>(i)] += number(r, i);
        }
        const std::string expected = bytes_of(sum);
        const auto at = static_cast<size_t>(own.begin * 8);
        if (scattered.substr(at, static_cast<size_t>(own.size() * 8)) !=
            expected.substr(at, static_cast<size_t>(own.size() * 8))) {
          return "another share of " + std::to_string(count);
        }
        peer.wait_until_complete(host_gpu_table().all_gather(
            peer.communicator(), peer.b().get(), x.data(), count, share, fluid_gpu_f64));
        peer.a_waits_for_b();
        if (peer.read(x) != expected) return "other sums of " + std::to_string(count);
      }
      return std::string("good");
    };
    for (const std::string& result : ranks(size, parts, GetParam().pace)) EXPECT_EQ(result, "good");
  }
}

TEST_P(GpuCollectiveFunctions, BroadcastTheBytesOfAnyRank) {
  const auto sent = [](const Peer& peer, int rank) {
    peer.wait_until_complete(fluid_gpu_ok);
    std::string all;
    for (const int root : {2, 0}) {
      const GpuMemory x = peer.copied("from " + std::to_string(rank));
      peer.wait_until_complete(host_gpu_table().broadcast(peer.communicator(), peer.b().get(),
                                                          x.data(), x.bytes(), root));
      peer.a_waits_for_b();
      all += peer.read(x);
    }
    return all;
  };
  for (const std::string& result : ranks(3, sent, GetParam().pace)) {
    EXPECT_EQ(result, "from 2from 0");
  }
}

/// Three steps of x = sum over ranks of (x + 1's bytes), with what comes before and after it.
TEST_P(GpuCollectiveFunctions, AreRecordedAndReplayedInTheOrderOfTheirStreams) {
  const auto body = [](const Peer& peer, int rank) {
    peer.wait_until_complete(fluid_gpu_ok);
    const GpuMemory x = peer.copied(bytes_of(std::vector<double>(50, 0)));
    const GpuMemory own = peer.copied(bytes_of(std::vector<double>(50, rank + 1)));
    const GpuMemory seen = peer.copied(bytes_of(std::vector<double>(50, 0)));
    const GpuEvent fork = peer.gpu().create_event(), join = peer.gpu().create_event();
    peer.gpu().begin_capture(peer.a());
    peer.gpu().copy(peer.a(), x.data(), own.data(), x.bytes());
    peer.gpu().record(fork, peer.a());
    peer.gpu().wait(peer.b(), fork);
    for (int times = 0; times < 2; ++times) {
      peer.wait_until_complete(host_gpu_table().all_reduce(peer.communicator(), peer.b().get(),
                                                           x.data(), 50, fluid_gpu_f64));
    }
    peer.gpu().record(join, peer.b());
    peer.gpu().wait(peer.a(), join);
    peer.gpu().copy(peer.a(), own.data(), x.data(), x.bytes());
    peer.gpu().copy(peer.a(), seen.data(), x.data(), x.bytes());
    const GpuGraph graph = peer.gpu().end_capture(peer.a());
    if (peer.read(seen) != bytes_of(std::vector<double>(50, 0))) return std::string("it ran");
    for (int step = 0; step < 3; ++step) peer.gpu().launch(graph, peer.a());
    const std::string result = peer.read(seen);
    double value = 0;
    std::memcpy(&value, result.data(), sizeof value);
    return std::to_string(value);
  };
  // 1 + 2 = 3, 3 + 3 = 6; then 6 + 6 = 12, 24; then 48, 96.
  for (const std::string& result : ranks(2, body, GetParam().pace)) {
    EXPECT_EQ(result, std::to_string(96.0));
  }
}

/// Work that does not wait for a collective runs although the collective never ends. Aborting
/// releases the other work.
TEST_P(GpuCollectiveFunctions, ARankThatNeverComesIsWaitedForUntilItIsAborted) {
  const auto body = [](const Peer& peer, int rank) {
    peer.wait_until_complete(fluid_gpu_ok);
    if (rank == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(700));
      host_gpu_table().communicator_abort(peer.communicator());
      return std::string("stayed away");
    }
    const GpuMemory x = peer.copied(bytes_of(std::vector<double>(50, 1)));
    const GpuMemory y = peer.copied("beside it"), host = peer.gpu().allocate_host(y.bytes());
    peer.wait_until_complete(host_gpu_table().all_reduce(peer.communicator(), peer.b().get(),
                                                         x.data(), 50, fluid_gpu_f64));
    const GpuEvent summed = peer.gpu().create_event();
    peer.gpu().record(summed, peer.b());
    peer.gpu().copy(peer.a(), host.data(), y.data(), y.bytes());
    peer.gpu().synchronize(peer.a());
    std::string result(reinterpret_cast<const char*>(host.data()),
                       static_cast<size_t>(host.bytes()));
    const auto done = [&] { return host_gpu_table().event_query(summed.get()); };
    if (Peer::polled(done, 200) != fluid_gpu_not_ready) result += ", done";
    host_gpu_table().communicator_abort(peer.communicator());
    peer.gpu().synchronize(peer.b());
    if (Peer::polled(done, 5000) != fluid_gpu_ok) result += ", not let go";
    if (host_gpu_table().communicator_state(peer.communicator()) != fluid_gpu_failed) {
      result += ", not failed";
    }
    if (host_gpu_table().all_reduce(peer.communicator(), peer.b().get(), x.data(), 50,
                                    fluid_gpu_f64) != fluid_gpu_invalid_usage) {
      result += ", used again";
    }
    return result;
  };
  EXPECT_EQ(ranks(2, body, GetParam().pace),
            (std::vector<std::string>{"beside it", "stayed away"}));
}

INSTANTIATE_TEST_SUITE_P(Host, GpuCollectiveFunctions, testing::kPaces, testing::name_of);
INSTANTIATE_TEST_SUITE_P(Long, GpuCollectiveFunctions, ::testing::Values(testing::kEarly),
                         testing::name_of);

TEST(GpuCommunicators, AreNotReadyUntilAllHaveMet) {
  fluid::testing::reset_host_gpu({});
  const FluidGpuUniqueId meeting = new_unique_id();
  World world = testing::loopback_world(2);
  const Peer peer(world, meeting);
  const auto state = [&] { return host_gpu_table().communicator_state(peer.communicator()); };
  EXPECT_EQ(Peer::polled(state, 100), fluid_gpu_not_ready);
  EXPECT_EQ(host_gpu_table().communicator_abort(peer.communicator()), fluid_gpu_ok);
  EXPECT_EQ(state(), fluid_gpu_failed);
}

TEST(GpuCommunicators, ACallMayNotFollowBeforeTheLastIsInEffect) {
  const auto body = [](const Peer& peer, int) {
    const GpuMemory x = peer.copied(bytes_of(std::vector<float>(8, 1)));
    const auto add_up = [&] {
      return host_gpu_table().all_reduce(peer.communicator(), peer.b().get(), x.data(), 8,
                                         fluid_gpu_f32);
    };
    peer.wait_until_complete(fluid_gpu_ok);
    std::string result = add_up() == fluid_gpu_ok ? "" : "refused ";
    result += add_up() == fluid_gpu_invalid_usage ? peer.error() : "taken";
    peer.wait_until_complete(fluid_gpu_ok);
    peer.gpu().synchronize(peer.b());
    return result;
  };
  EXPECT_EQ(ranks(1, body)[0], "a communicator is used before the last call is in effect");
}

TEST(GpuCommunicators, TwoRanksOnOneGpuAreMisuse) {
  const auto body = [](const Peer& peer, int) {
    return peer.state() == fluid_gpu_invalid_usage ? peer.error() : "taken";
  };
  for (const std::string& result : ranks(3, body, HostPace::late, 2)) {
    EXPECT_EQ(result, "rank 0 and rank 2 have the same GPU");
  }
}

TEST(GpuCommunicators, RanksThatMeanDifferentCollectivesFail) {
  const auto body = [](const Peer& peer, int rank) {
    peer.wait_until_complete(fluid_gpu_ok);
    const GpuMemory x = peer.copied(bytes_of(std::vector<float>(8, 1)));
    peer.wait_until_complete(host_gpu_table().all_reduce(
        peer.communicator(), peer.b().get(), x.data(), rank == 0 ? 8 : 7, fluid_gpu_f32));
    const FluidGpuResult result = host_gpu_table().stream_synchronize(peer.b().get());
    return result == fluid_gpu_failed ? peer.error() : "done";
  };
  EXPECT_EQ(ranks(2, body)[0],
            "queued work failed: rank 1 exchanges all_reduce 7 7 f32, rank 0 all_reduce 8 8 f32");
}

TEST(GpuCommunicators, OutliveTheGraphsThatHoldTheirWork) {
  const auto body = [](const Peer& peer, int) {
    peer.wait_until_complete(fluid_gpu_ok);
    const GpuMemory x = peer.copied(bytes_of(std::vector<float>(8, 1)));
    peer.gpu().begin_capture(peer.b());
    peer.wait_until_complete(host_gpu_table().all_reduce(peer.communicator(), peer.b().get(),
                                                         x.data(), 8, fluid_gpu_f32));
    const GpuGraph graph = peer.gpu().end_capture(peer.b());
    const FluidGpuResult result = host_gpu_table().communicator_destroy(peer.communicator());
    return result == fluid_gpu_invalid_usage ? peer.error() : "destroyed";
  };
  EXPECT_EQ(ranks(1, body)[0], "there are graphs with work of a communicator");
}

}  // namespace
}  // namespace fluid::gpu_collectives_test
