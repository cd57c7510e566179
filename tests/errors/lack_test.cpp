// Threads and memory that the system does not give: a message and exit code 3, no crash.

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/support/fluidrun_test.h"

namespace fluid::lack_test {
namespace {

#ifdef FLUID_SANITIZED
constexpr bool kAddressesAreLimited = false;  // the sanitizer's shadow passes any limit
#else
constexpr bool kAddressesAreLimited = true;
#endif

class Lack : public FluidrunTest {
 protected:
  /// Expects exit code 3 and one message, which holds `message`.
  void expect_rejection(const std::string& arguments, const std::string& message) const {
    const Result result = run(arguments + " --cache-dir ''");
    EXPECT_EQ(result.code, 3) << result.output;
    EXPECT_NE(result.output.find(message), std::string::npos) << result.output;
    EXPECT_EQ(result.output.find("internal error"), std::string::npos) << result.output;
  }

  static inline const std::string kTrain =
      "train line.fir --data synthetic-linear?n=50 --batch 10 ";
};

/// The process limit does not apply to root, so the tests run as a user that no one else uses.
class LackOfThreads : public Lack {
 protected:
  void SetUp() override {
    Lack::SetUp();
    if (IsSkipped()) return;
    std::filesystem::permissions(dir_.path(), std::filesystem::perms::all);
    limit(100);
    const Result can_run = run("--version");
    if (can_run.code != 0) GTEST_SKIP() << "no other user can run it: " << can_run.output;
  }
  void limit(int threads) {
    const int user = 1'000'000 + getpid();
    before_ = "setpriv --reuid=" + std::to_string(user) +
              " --clear-groups prlimit --nproc=" + std::to_string(threads) + " ";
  }
};

TEST_F(LackOfThreads, OfThePoolIsNamed) {
  for (const int given : {1, 2, 6}) {
    limit(given);
    const std::string lack =
        "a pool of 4 threads needs 6 more while it starts, but the system creates only ";
    expect_rejection(kTrain + "--threads 4", lack + std::to_string(given - 1));
    expect_rejection("eval line.fir --data synthetic-linear?n=50 --threads 4", lack);
  }
}

/// libgomp ends the process where it cannot start a thread: whatever else takes threads, as data
/// that is read and sleepers that idle_threads starts, it must not come to that.
TEST_F(LackOfThreads, NeverReachesLibgomp) {
  for (int given = 1; given <= 14; ++given) {
    limit(given);
    for (const std::string& command :
         {kTrain + "--threads 2", kTrain + "--threads 2 --val synthetic-linear?n=10",
          std::string("predict line.fir --data synthetic-linear?n=50 --threads 2")}) {
      const Result result = run(command + " --cache-dir ''");
      EXPECT_TRUE(result.code == 0 || result.code == 3) << given << ": " << result.output;
      EXPECT_EQ(result.output.find("libgomp"), std::string::npos) << result.output;
    }
  }
}

TEST_F(LackOfThreads, OfTheReaderIsNamed) {
  limit(1);
  expect_rejection(kTrain + "--threads 1", "the system cannot create another thread: ");
}

TEST_F(LackOfThreads, ThatCanBeDoneWithoutCostsNothing) {
  limit(2);  // the reader's
  const Result trained = run(kTrain + "--threads 1 --cache-dir ''");
  EXPECT_EQ(trained.code, 0) << trained.output;
  limit(1);
  std::ofstream(dir_.file("bright.fir")) << R"(program @bright {
  %x = data "image" : f32[?, 1, 28, 28]
  %m = mean(%x) : f32[]
  output "m" = %m
})";
  const Result generated =
      run("eval bright.fir --data digits?n=600 --batch 600 --threads 1 --cache-dir ''");
  EXPECT_EQ(generated.code, 0) << generated.output;
  // The data for validation is opened all the same.
  expect_rejection(kTrain + "--threads 1 --val synthetic-linear?n=10",
                   "the system cannot create another thread: ");
}

TEST_F(Lack, OfMemoryForTheArenaIsNamed) {
  if (!kAddressesAreLimited) GTEST_SKIP() << "the address sanitizer needs all addresses";
  std::ofstream(dir_.file("large.fir")) << R"(program @large {
  %x = data "x" : f32[?, 2]
  %w = param "w" {init = "constant", value = 0.0} : f32[2, 250000000]
  %p = matmul(%x, %w) : f32[?, 250000000]
  %m = mean(%p) : f32[]
  output "m" = %m
})";
  before_ = "ulimit -v 1500000; ";
  const Result result = run("eval large.fir --data synthetic-linear?n=1 --batch 1 --cache-dir ''");
  EXPECT_EQ(result.code, 3) << result.output;
}

TEST_F(Lack, OfMemoryForDataIsNamed) {
  if (!kAddressesAreLimited) GTEST_SKIP() << "the address sanitizer needs all addresses";
  before_ = "ulimit -v 700000; ";
  expect_error("predict line.fir --data digits?n=1000000",
               "no memory for tensor u8[1000000, 1, 28, 28]");
}

/// Wherever it comes, libraries included.
TEST_F(Lack, OfMemoryNeverCrashes) {
  if (!kAddressesAreLimited) GTEST_SKIP() << "the address sanitizer needs all addresses";
  constexpr int kNotLoaded = 127;  // the program's own code does not fit
  for (const char* kib : {"140000", "170000", "200000", "250000", "400000"}) {
    before_ = "ulimit -v " + std::string(kib) + "; ";
    const Result result = run(kTrain + "--threads 2 --cache-dir ''");
    EXPECT_TRUE(result.code == 0 || result.code == 3 || result.code == kNotLoaded)
        << kib << ": " << result.code << " " << result.output;
  }
}

}  // namespace
}  // namespace fluid::lack_test
