#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

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
  if (processors < 3) return;
  limit_spinning(2);  // leaves more processors idle
  EXPECT_EQ(threads_now(), after + processors - 2 + 1);
}

}  // namespace
}  // namespace fluid::idle_threads_test
