#include "ir/threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

namespace fluid::threads_test {
namespace {

TEST(RunTasks, RunsEachIndexOnce) {
  for (const size_t threads : {1, 3, 20}) {
    std::vector<std::atomic<int>> runs(17);
    run_tasks(runs.size(), threads, [&](size_t i) { ++runs[i]; });
    for (const auto& count : runs) EXPECT_EQ(count, 1);
  }
  run_tasks(0, 4, [](size_t) { FAIL(); });
}

TEST(RunTasks, RethrowsTheExceptionOfTheLowestIndex) {
  for (const size_t threads : {1, 4}) {
    std::atomic<int> runs = 0;
    try {
      run_tasks(1000, threads, [&](size_t i) {
        ++runs;
        if (i >= 5) throw std::runtime_error(std::to_string(i));
      });
      FAIL();
    } catch (const std::runtime_error& e) {
      EXPECT_STREQ(e.what(), "5");
    }
    EXPECT_LT(runs, 20);
  }
}

}  // namespace
}  // namespace fluid::threads_test
