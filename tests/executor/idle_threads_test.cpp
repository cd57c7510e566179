#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "executor/host/cpu_contention.h"
#include "executor/host/libgomp.h"
#include "executor/host/parallel.h"

namespace fluid::idle_threads_test {
namespace {

int64_t threads_now() {
  int64_t n = 0;
  for ([[maybe_unused]] const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    ++n;
  }
  return n;
}

/// libgomp throttles its spinning where it has started more threads than there are processors.
TEST(IdleThreads, AreMoreThanTheProcessorsWhereAPoolHasThemAll) {
  if (!std::filesystem::exists("/proc/self/task")) GTEST_SKIP() << "no /proc/self/task";
  unsetenv("GOMP_SPINCOUNT");  // libgomp has read it; it is asked for again
  unsetenv("OMP_WAIT_POLICY");
  const int processors = omp_get_num_procs();
  if (processors < 2) GTEST_SKIP() << "a pool of two is more than one processor";
  const int64_t before = threads_now();
  limit_spinning(1);  // no pool
  EXPECT_EQ(threads_now(), before);
  limit_spinning(processors);
  const int64_t after = threads_now();
  EXPECT_GT(after, before);
  limit_spinning(processors);
  EXPECT_EQ(threads_now(), after);
  if (processors >= 3) {
    limit_spinning(2);  // leaves more processors idle
    EXPECT_EQ(threads_now(), after + processors - 2 + 1);
  }
  allow_spinning();
  for (int i = 0; i < 1000 && threads_now() > before; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(threads_now(), before);
  limit_spinning(processors);
  EXPECT_EQ(threads_now(), after);
  allow_spinning();
}

/// Updates `contention` every 0.2 s at `rate` preemptions a second. Returns the seconds until its
/// state changes, at most `most`.
double seconds_to_change(CpuContention& contention, double& now, double& preemptions, double rate,
                         double most) {
  const bool state = contention.is_contended();
  const double begin = now;
  while (now - begin < most && contention.is_contended() == state) {
    now += 0.2;
    preemptions += 0.2 * rate;
    contention.update(static_cast<int64_t>(now * 1e9 + 1), static_cast<int64_t>(preemptions));
  }
  return now - begin;
}

TEST(CpuContention, BeginsWithManyPreemptionsAndEndsWithFew) {
  CpuContention contention;
  double now = 100, preemptions = 5000;
  EXPECT_NEAR(seconds_to_change(contention, now, preemptions, 50, 10), 10, 0.3);
  EXPECT_FALSE(contention.is_contended());
  EXPECT_NEAR(seconds_to_change(contention, now, preemptions, 400, 10), 0.4, 0.3);
  EXPECT_TRUE(contention.is_contended());
  EXPECT_NEAR(seconds_to_change(contention, now, preemptions, 400, 10), 10, 0.3);
  EXPECT_TRUE(contention.is_contended());
  EXPECT_NEAR(seconds_to_change(contention, now, preemptions, 50, 10), 2, 0.3);
  EXPECT_FALSE(contention.is_contended());
  // Contention that comes back is expected to come back again.
  EXPECT_NEAR(seconds_to_change(contention, now, preemptions, 400, 10), 0.4, 0.3);
  EXPECT_NEAR(seconds_to_change(contention, now, preemptions, 50, 10), 4, 0.3);
}

TEST(CpuContention, IgnoresAShortBurst) {
  CpuContention contention;
  double now = 100, preemptions = 0;
  seconds_to_change(contention, now, preemptions, 50, 1);
  seconds_to_change(contention, now, preemptions, 1000, 0.2);
  seconds_to_change(contention, now, preemptions, 50, 1);
  EXPECT_FALSE(contention.is_contended());
}

}  // namespace
}  // namespace fluid::idle_threads_test
