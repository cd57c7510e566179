// Several processes on the loopback interface compute together; some of them fail.

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <random>
#include <thread>

#include "executor/comm/communicator.h"
#include "ir/error.h"
#include "ir/tensor.h"
#include "passes/bucket.h"
#include "tests/support/errors.h"
#include "tests/support/full_run.h"
#include "tests/support/processes.h"

namespace fluid::gloo_test {
namespace {

using Duration = std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;
using testing::Ranks;
using testing::say;

constexpr Duration kLong{15000};
constexpr Duration kShort{1000};

void expect_has(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

/// The values that rank `rank` contributes; the same in each call.
template <class T>
std::vector<T> numbers(int rank, int64_t count) {
  std::mt19937 random(static_cast<unsigned>(rank + 1));
  std::vector<T> all(static_cast<size_t>(count));
  for (T& x : all) x = static_cast<T>(static_cast<double>(random()) / 4294967296.0 - 0.5);
  return all;
}

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

constexpr int64_t kCounts[] = {0, 1, 2, 3, 5, 64, 1000, 300'007};

template <class T>
void expect_serial_sum(DType dtype, double tolerance) {
  for (int size = 1; size <= 4; ++size) {
    SCOPED_TRACE(size);
    auto sums = [dtype](const World& world) {
      auto all = make_communicator(world, kLong);
      std::string result;
      for (int64_t count : kCounts) {
        std::vector<T> mine = numbers<T>(world.rank, count);
        all->all_reduce(mine.data(), count, dtype);
        result += bytes_of(mine);
      }
      all->barrier(kLong);
      return result;
    };
    std::vector<std::string> results = Ranks(size, sums).results();
    size_t offset = 0;
    for (int64_t count : kCounts) {
      std::vector<double> serial(static_cast<size_t>(count));
      for (int rank = 0; rank < size; ++rank) {
        std::vector<T> part = numbers<T>(rank, count);
        for (size_t i = 0; i < part.size(); ++i) serial[i] += static_cast<double>(part[i]);
      }
      ASSERT_LE(offset + serial.size() * sizeof(T), results[0].size()) << results[0].substr(0, 300);
      std::vector<T> sum(serial.size());
      if (count > 0) std::memcpy(sum.data(), &results[0][offset], sum.size() * sizeof(T));
      offset += sum.size() * sizeof(T);
      for (size_t i = 0; i < sum.size(); ++i) {
        ASSERT_NEAR(static_cast<double>(sum[i]), serial[i], tolerance) << count << " at " << i;
      }
    }
    for (const std::string& result : results) EXPECT_TRUE(result == results[0]);
    EXPECT_TRUE(Ranks(size, sums).results()[0] == results[0]) << "another run gives other bits";
  }
}

TEST(Gloo, AddsDoubles) { expect_serial_sum<double>(f64, 1e-15); }

TEST(Gloo, AddsFloats) { expect_serial_sum<float>(f32, 5e-7); }

TEST(Gloo, ScattersSumsAndGathersThem) {
  for (int size = 2; size <= 4; ++size) {
    SCOPED_TRACE(size);
    const std::vector<std::string> results =
        Ranks(size, [](const World& world) {
          auto all = make_communicator(world, kLong);
          for (int64_t count : kCounts) {
            std::vector<double> sum = numbers<double>(world.rank, count), part = sum;
            all->all_reduce(sum.data(), count, f64);
            all->reduce_scatter(part.data(), count, f64);
            const BucketShard own = bucket_shard(count, world.size, world.rank);
            for (int64_t i = 0; i < count; ++i) {
              const bool mine = own.begin <= i && i < own.end;
              const auto at = static_cast<size_t>(i);
              EXPECT_NEAR(part[at], mine ? sum[at] : 0, 1e-15) << count << " at " << i;
            }
            all->all_gather(part.data(), count, f64);
            for (size_t i = 0; i < sum.size(); ++i) EXPECT_NEAR(part[i], sum[i], 1e-15) << i;
            sum = part;
            all->broadcast(sum.data(), count * 8, 0);
            EXPECT_EQ(sum, part);
          }
          all->barrier(kLong);
          return std::string(::testing::Test::HasFailure() ? "differs" : "");
        }).results();
    for (const std::string& result : results) EXPECT_EQ(result, "");
  }
}

TEST(Gloo, AddsHalfPrecisionValues) {
  for (DType dtype : {f16, bf16}) {
    std::vector<std::string> results = Ranks(3, [dtype](const World& world) {
                                         auto all = make_communicator(world, kLong);
                                         std::vector<uint16_t> halves;
                                         for (float x : numbers<float>(world.rank, 1001))
                                           halves.push_back(float_to_half(x, dtype));
                                         all->all_reduce(halves.data(), 1001, dtype);
                                         all->barrier(kLong);
                                         return bytes_of(halves);
                                       }).results();
    ASSERT_EQ(results[0].size(), 2002u) << results[0];
    for (const std::string& result : results) EXPECT_TRUE(result == results[0]);
    std::vector<uint16_t> sum(1001);
    std::memcpy(sum.data(), results[0].data(), 2002);
    // Three operands and two additions, each rounded at a magnitude below 2.
    double tolerance = dtype == f16 ? 3.5 * std::ldexp(1, -11) : 3.5 * std::ldexp(1, -8);
    for (size_t i = 0; i < sum.size(); ++i) {
      double serial = 0;
      for (int rank = 0; rank < 3; ++rank) serial += numbers<float>(rank, 1001)[i];
      ASSERT_NEAR(half_to_float(sum[i], dtype), serial, tolerance) << i;
    }
  }
}

TEST(Gloo, BroadcastsFromAnyRank) {
  Ranks ranks(3, [](const World& world) {
    auto all = make_communicator(world, kLong);
    std::string result;
    for (int root = 0; root < 3; ++root) {
      std::string text = "from " + std::to_string(world.rank);
      all->broadcast(text.data(), static_cast<int64_t>(text.size()), root);
      result += text + ";";
    }
    all->barrier(kLong);
    return result;
  });
  for (const std::string& result : ranks.results()) EXPECT_EQ(result, "from 0;from 1;from 2;");
}

TEST(Gloo, CheckEqualNamesTheRankThatDiffers) {
  Ranks ranks(4, [](const World& world) {
    auto all = make_communicator(world, kLong);
    check_equal(*all, world, "program", uint64_t{1} << 63);
    try {
      check_equal(*all, world, "seed", world.rank % 2 == 0 ? 5 : world.rank);
    } catch (const UserError& e) {
      all->barrier(kLong);  // it still works
      return std::string(e.what());
    }
    return std::string("agreed");
  });
  for (const std::string& result : ranks.results()) {
    EXPECT_EQ(result, "rank 1, 3 has another seed than rank 0: start all ranks alike");
  }
}

TEST(Gloo, RanksReportInWhatTheyDiffer) {
  Ranks ranks(3, [](const World& world) {
    auto all = make_communicator(world, kLong);
    std::map<std::string, std::string> options = {{"seed", "5"}, {"zero", "0"}};
    check_equal(*all, world, "set of options", options);
    if (world.rank > 0) options["zero"] = "1";
    if (world.rank == 1) options["tf32"] = "on";
    try {
      check_equal(*all, world, "set of options", options);
    } catch (const UserError& e) {
      all->barrier(kLong);  // it still works
      return std::string(e.what());
    }
    return std::string("agreed");
  });
  for (const std::string& result : ranks.results()) {
    EXPECT_EQ(result,
              "rank 1, 2 has another set of options than rank 0: start all ranks alike "
              "(rank 1: tf32 on (rank 0: none), zero 1 (rank 0: 0))");
  }
}

TEST(Gloo, ABarrierWaitsForTheLast) {
  auto now = [] { return std::to_string(Clock::now().time_since_epoch().count()); };
  Ranks ranks(3, [now](const World& world) {
    auto all = make_communicator(world, kLong);
    all->barrier(kLong);
    if (world.rank == 2) {
      std::this_thread::sleep_for(Duration(200));
      say(now());
    }
    all->barrier(kLong);
    return now();
  });
  std::string entered = ranks.line(2);
  for (const std::string& left : ranks.results()) EXPECT_GE(left, entered);  // as many digits
}

TEST(Gloo, UnevenTimingChangesNothing) {
  Ranks ranks(4, [](const World& world) {
    auto all = make_communicator(world, kLong);
    std::mt19937 random(static_cast<unsigned>(world.rank));
    std::vector<float> sum = numbers<float>(world.rank, 5000);
    for (int step = 0; step < 30; ++step) {
      std::this_thread::sleep_for(Duration(random() % 10));
      all->all_reduce(sum.data(), 5000, f32);
      for (float& x : sum) x *= 0.25f + static_cast<float>(world.rank) / 64;
    }
    all->all_reduce(sum.data(), 5000, f32);
    all->barrier(kLong);
    return bytes_of(sum);
  });
  std::vector<std::string> results = ranks.results();
  ASSERT_EQ(results[0].size(), 20000u) << results[0].substr(0, 300);
  for (const std::string& result : results) EXPECT_TRUE(result == results[0]);
}

struct Failure {
  int size, culprit, signal;
};

void expect_named(const Failure& failure, Duration timeout, const std::string& cause) {
  SCOPED_TRACE("size " + std::to_string(failure.size) + ", rank " +
               std::to_string(failure.culprit));
  Ranks ranks(failure.size, [timeout](const World& world) {
    auto all = make_communicator(world, timeout);
    std::vector<float> sum(100'000);
    all->barrier(kLong);
    say("begun");
    while (true) all->all_reduce(sum.data(), 100'000, f32);
    return std::string();
  });
  for (int rank = 0; rank < failure.size; ++rank) EXPECT_EQ(ranks.line(rank), "begun");
  ranks.signal(failure.culprit, failure.signal);
  auto start = Clock::now();
  for (int rank = 0; rank < failure.size; ++rank) {
    if (rank == failure.culprit) continue;
    std::string result = ranks.result(rank);
    expect_has(result,
               "DeviceError: rank " + std::to_string(rank) + " cannot complete all-reduce ");
    expect_has(result, ": rank " + std::to_string(failure.culprit) + cause);
  }
  EXPECT_LT(Clock::now() - start, timeout + Duration(3000));
}

TEST(Gloo, NamesAKilledPeer) {
  for (Failure failure : {Failure{2, 1, SIGKILL}, {3, 1, SIGKILL}, {4, 2, SIGKILL}}) {
    expect_named(failure, 3 * kShort, " has ended: it was killed, or failed by itself");
  }
}

TEST(Gloo, NamesAKilledMaster) {
  expect_named({3, 0, SIGKILL}, 3 * kShort, ", which serves the store, has ended");
}

TEST(Gloo, NamesAStoppedPeer) {
  expect_named({2, 1, SIGSTOP}, 2 * kShort, " has been silent for ");
  expect_named({4, 3, SIGSTOP}, 2 * kShort, " has been silent for ");
}

TEST(Gloo, NamesAStoppedMaster) {
  expect_named({3, 0, SIGSTOP}, 2 * kShort, ", which serves the store, has ended, is stopped");
}

TEST(Gloo, NamesALatePeer) {
  Ranks ranks(3, [](const World& world) {
    auto all = make_communicator(world, kLong);
    all->barrier(kLong);
    if (world.rank == 1) std::this_thread::sleep_for(5 * kShort);
    all->barrier(kShort);
    return std::string();
  });
  for (int rank : {0, 2}) {
    expect_has(ranks.result(rank), "rank 1 is late: it has entered 2 collective operations, rank ");
  }
}

constexpr int kDescriptors = 256;

/// By descriptor of this process, the port at this or the other end; 0 where no TCP connection is.
std::array<in_port_t, kDescriptors> ports(decltype(&getsockname) of_end) {
  std::array<in_port_t, kDescriptors> all = {};
  for (int fd = 0; fd < kDescriptors; ++fd) {
    sockaddr_in end = {}, peer = {};
    socklen_t end_size = sizeof end, peer_size = sizeof peer;
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_size) != 0) continue;
    if (of_end(fd, reinterpret_cast<sockaddr*>(&end), &end_size) != 0) continue;
    if (end.sin_family == AF_INET) all[static_cast<size_t>(fd)] = end.sin_port;
  }
  return all;
}

TEST(Gloo, ABrokenConnectionIsNoRanksFault) {
  Ranks ranks(3, [](const World& world) {
    auto all = make_communicator(world, 4 * kShort);
    auto of_rank2 = ports(getsockname);
    all->broadcast(of_rank2.data(), sizeof of_rank2, 2);
    all->barrier(kLong);
    const auto peers = ports(getpeername);
    for (int fd = 0; world.rank == 1 && fd < kDescriptors; ++fd) {
      const in_port_t peer = peers[static_cast<size_t>(fd)];
      if (peer != 0 && std::ranges::count(of_rank2, peer) > 0) shutdown(fd, SHUT_RDWR);
    }
    float sum = 1;
    while (true) all->all_reduce(&sum, 1, f32);
    return std::string();
  });
  const auto start = Clock::now();
  for (const std::string& result : ranks.results()) {
    expect_has(result, "every rank is alive: a connection between two ranks is broken");
  }
  EXPECT_LT(Clock::now() - start, 4 * kShort + Duration(3000));
}

TEST(Gloo, RanksMeetHoweverLateTheyAre) {
  Ranks ranks(3, [](const World& world) {
    auto all = make_communicator(world, kLong);
    all->set_timeout(kShort);
    for (int late = 0; late < 3; ++late) {
      if (world.rank == late) std::this_thread::sleep_for(3 * kShort);
      all->barrier(kLong);
    }
    float sum = 1;
    all->all_reduce(&sum, 1, f32);
    return std::to_string(static_cast<int>(sum));
  });
  for (const std::string& result : ranks.results()) EXPECT_EQ(result, "3");
}

TEST(Gloo, ABarrierGivesUpARankThatIsStoppedOrGone) {
  for (const Failure& failure :
       {Failure{3, 0, SIGSTOP}, {3, 2, SIGSTOP}, {3, 0, SIGKILL}, {3, 2, SIGKILL}}) {
    SCOPED_TRACE(failure.culprit);
    Ranks ranks(failure.size, [failure](const World& world) {
      auto all = make_communicator(world, kLong);
      all->set_timeout(2 * kShort);
      all->barrier(kLong);
      say("met");
      if (world.rank == failure.culprit) std::this_thread::sleep_for(kLong);
      all->barrier(20 * kLong);
      return std::string();
    });
    for (int rank = 0; rank < failure.size; ++rank) EXPECT_EQ(ranks.line(rank), "met");
    ranks.signal(failure.culprit, failure.signal);
    const auto start = Clock::now();
    for (int rank = 0; rank < failure.size; ++rank) {
      if (rank == failure.culprit) continue;
      const std::string result = ranks.result(rank);
      expect_has(result, "rank " + std::to_string(rank) + " cannot complete barrier 2: rank " +
                             std::to_string(failure.culprit));
    }
    EXPECT_LT(Clock::now() - start, 2 * kShort + Duration(3000));
  }
}

/// Also of rank 0, which serves the store.
TEST(Gloo, ABarrierWaitsForARankThatIsStoppedForAMoment) {
  for (const int late : {0, 1}) {
    Ranks ranks(2, [late](const World& world) {
      auto all = make_communicator(world, kLong);
      all->set_timeout(6 * kShort);
      all->barrier(kLong);
      say("met");
      if (world.rank == late) std::this_thread::sleep_for(kShort);
      all->barrier(kLong);
      all->barrier(kLong);
      return std::string();
    });
    for (const int rank : {0, 1}) EXPECT_EQ(ranks.line(rank), "met");
    ranks.signal(late, SIGSTOP);
    std::this_thread::sleep_for(4 * kShort);
    ranks.signal(late, SIGCONT);
    for (const int rank : {0, 1}) EXPECT_EQ(ranks.result(rank), "");
  }
}

TEST(Gloo, NamesAPeerThatLeaves) {
  Ranks ranks(2, [](const World& world) {
    auto all = make_communicator(world, kLong);
    all->barrier(kLong);
    if (world.rank == 0) all->barrier(kLong);
    return std::string();
  });
  expect_has(ranks.result(0), "rank 1 has left the group");
}

/// Returns the error of rank 0 when work outside of the communicator, such as GPU work, does not
/// complete.
std::string error_seen_by_rank_0(const std::function<void()>& second, const std::string& said) {
  Ranks ranks(2, [&](const World& world) {
    auto all = make_communicator(world, kShort);
    all->barrier(kLong);
    const int64_t number = all->begin_collective();
    if (world.rank == 1) second();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    std::string first;
    try {
      all->throw_failure("the GPUs' step", world.rank == 0 ? all->begin_collective() : number,
                         said);
    } catch (const DeviceError& e) {
      first = e.what();
    }
    try {
      all->begin_collective();
    } catch (const DeviceError& again) {
      return first == again.what() ? first : "another: " + std::string(again.what());
    }
    return std::string("not broken");
  });
  return ranks.result(0);
}

TEST(Gloo, NamesWhoIsToBlameForWhatGpusDo) {
  const std::string begins = "rank 0 cannot complete the GPUs' step 3: ";
  const auto killed = [] { raise(SIGKILL); };
  const auto late = [] { std::this_thread::sleep_for(2 * kShort); };
  EXPECT_EQ(error_seen_by_rank_0(killed, "the network is down"),
            begins + "rank 1 has ended: it was killed, or failed by itself; the network is down");
  EXPECT_EQ(error_seen_by_rank_0(late, "the GPU is broken"), begins + "the GPU is broken");
  EXPECT_EQ(error_seen_by_rank_0(late, ""),
            begins + "rank 1 is late: it has entered 3 collective operations, rank 0 4");
}

/// Rank 0 has started one more collective, and fails in a collective that both ranks have started.
TEST(Gloo, NobodyIsLateForWhatAllHaveBegun) {
  Ranks ranks(2, [](const World& world) {
    auto all = make_communicator(world, kShort);
    all->barrier(kLong);
    const int64_t number = all->begin_collective();
    if (world.rank == 0) all->begin_collective();
    return error_of<DeviceError>([&] { all->throw_failure("the GPUs' step", number, ""); });
  });
  EXPECT_EQ(ranks.result(0),
            "rank 0 cannot complete the GPUs' step 2: every rank is alive: a connection between "
            "two ranks is broken");
}

TEST(Gloo, StaysBrokenAfterAFailure) {
  Ranks ranks(2, [](const World& world) {
    auto all = make_communicator(world, kLong);
    all->barrier(kLong);
    std::string errors;
    if (world.rank == 1) return errors;
    for (int attempt = 0; attempt < 2; ++attempt) {
      try {
        all->barrier(kLong);
      } catch (const DeviceError& e) {
        errors += std::string(e.what()) + "\n";
      }
    }
    return errors;
  });
  std::string first = ranks.line(0), rest = ranks.result(0);
  expect_has(first, "rank 0 cannot complete barrier 2: rank 1 has left the group");
  EXPECT_EQ(rest, first + "\n");
}

TEST(Gloo, FailsAtAnyMoment) {
  std::mt19937 random(7);
  int rounds = testing::is_full_run() ? 50 : 5;
  for (int round = 0; round < rounds; ++round) {
    SCOPED_TRACE(round);
    int size = 2 + static_cast<int>(random() % 3);
    int culprit = static_cast<int>(random() % static_cast<unsigned>(size));
    int signal = random() % 2 ? SIGKILL : SIGSTOP;
    Duration moment(random() % 400);
    Ranks ranks(size, [](const World& world) {
      auto all = make_communicator(world, 2 * kShort);
      std::vector<float> sum(20'000);
      while (true) all->all_reduce(sum.data(), 20'000, f32);
      return std::string();
    });
    std::this_thread::sleep_for(moment);
    ranks.signal(culprit, signal);
    auto start = Clock::now();
    for (int rank = 0; rank < size; ++rank) {
      if (rank != culprit) expect_has(ranks.result(rank), "DeviceError: ");
    }
    EXPECT_LT(Clock::now() - start, Duration(8000));
  }
}

}  // namespace
}  // namespace fluid::gloo_test
