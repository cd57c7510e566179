// Exchanges made by a thread of their own.

#include "executor/comm/collective_queue.h"

#include <gtest/gtest.h>

#include <chrono>
#include <numeric>

#include "ir/error.h"

namespace fluid::collective_queue_test {
namespace {

/// Collective n, counted from 1, adds n to every element. Collective `failing` fails.
class CountingCommunicator : public Communicator {
 public:
  explicit CountingCommunicator(int failing = 0) : failing_(failing) {}
  void all_reduce(void* data, int64_t count, DType) override { add(data, count); }
  void reduce_scatter(void* data, int64_t count, DType) override { add(data, count); }
  void all_gather(void* data, int64_t count, DType) override { add(data, count); }
  void broadcast(void*, int64_t, int) override {}
  void barrier(std::chrono::milliseconds) override {}
  void set_timeout(std::chrono::milliseconds) override {}

 private:
  void add(void* data, int64_t count) {
    ++made_;
    if (made_ == failing_) throw DeviceError("rank 1 is gone");
    auto* values = static_cast<double*>(data);
    for (int64_t i = 0; i < count; ++i) values[i] += made_;
  }

  int failing_, made_ = 0;
};

TEST(CollectiveQueue, RunsCollectivesInTheirOrder) {
  CountingCommunicator communicator;
  CollectiveQueue queue(communicator);
  queue.reserve(3);
  for (int step = 0; step < 100; ++step) {
    std::vector<std::vector<double>> buckets(3, std::vector<double>(64));
    std::vector<TimeSpan> times(3);
    constexpr CollectiveKind kKinds[] = {CollectiveKind::all_reduce, CollectiveKind::reduce_scatter,
                                         CollectiveKind::all_gather};
    for (size_t i = 0; i < 3; ++i) {
      std::iota(buckets[i].begin(), buckets[i].end(), 0);
      queue.enqueue(kKinds[i], buckets[i].data(), 64, f64, &times[i]);
    }
    queue.wait_for_first(1);
    EXPECT_EQ(buckets[0][63], 63 + 3 * step + 1);
    queue.wait_for_all();
    EXPECT_EQ(buckets[2][63], 63 + 3 * step + 3);
    EXPECT_LE(times[0].end, times[1].begin);
    EXPECT_LE(times[1].end, times[2].begin);
  }
}

TEST(CollectiveQueue, HandsOnWhatFails) {
  CountingCommunicator communicator(2);
  CollectiveQueue queue(communicator);
  double a = 0, b = 0, c = 0;
  for (double* value : {&a, &b, &c}) queue.enqueue(CollectiveKind::all_reduce, value, 1, f64);
  EXPECT_THROW(queue.wait_for_all(), DeviceError);
  EXPECT_EQ(a, 1);
  EXPECT_EQ(c, 0) << "nothing is exchanged after a failure";
  queue.abandon();
  EXPECT_THROW(queue.wait_for_first(1), DeviceError);
}

TEST(CollectiveQueue, LetsGoOfWhatIsAbandoned) {
  CountingCommunicator communicator;
  CollectiveQueue queue(communicator);
  {
    std::vector<double> bucket(1 << 12);
    for (int i = 0; i < 100; ++i)
      queue.enqueue(CollectiveKind::all_reduce, bucket.data(), 1 << 12, f64);
    queue.abandon();
  }
  EXPECT_THROW(queue.wait_for_first(1), DeviceError) << "the others wait for what was dropped";
}

}  // namespace
}  // namespace fluid::collective_queue_test
