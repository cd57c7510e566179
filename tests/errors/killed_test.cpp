// A process that is killed in the middle of writing a checkpoint, at every call that changes a file
// or the directory: what is there afterwards loads.

#include <gtest/gtest.h>

#include <filesystem>

#include "executor/checkpoint/checkpoint.h"
#include "tests/support/fluidrun_test.h"

namespace fluid::killed_test {
namespace {

namespace fs = std::filesystem;

constexpr int kMostCalls = 200;
constexpr int kKilled = 128 + 9;

class Killed : public FluidrunTest {
 protected:
  void SetUp() override {
    FluidrunTest::SetUp();
    if (IsSkipped()) return;
    if (run_command("strace --version > /dev/null").code != 0) GTEST_SKIP() << "no strace here";
    const Result traced = run_command("strace -f -o trace true");
    if (traced.code != 0) GTEST_SKIP() << "nothing can be traced here: " << traced.output;
    const Result begun = run(kTrain + "--checkpoint-every 2 --max-steps 4");
    ASSERT_EQ(begun.code, 0) << begun.output;
    fs::rename(dir_.file("run"), dir_.file("begun"));
  }

  /// Goes on from the end of an epoch, step 4, to that of the next, the best until then, and is
  /// killed as it enters the `nth` of these calls.
  Result go_on(const std::string& calls, int nth) {
    fs::remove_all(dir_.file("run"));
    fs::copy(dir_.file("begun"), dir_.file("run"),
             fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    // Nothing but this may differ: one process, no search for leaks, which cannot be traced.
    before_ =
        "GOMP_SPINCOUNT=1000 ASAN_OPTIONS=detect_leaks=0 strace -f -o trace -e "
        "trace=" +
        calls + " -e inject=" + calls + ":signal=KILL:when=" + std::to_string(nth) + " ";
    return run(kTrain + "--resume --max-steps 8");
  }

  static inline const std::string kTrain =
      "train line.fir --data synthetic-linear?n=40 --val synthetic-linear?n=10 --batch 10 --epochs "
      "3 "
      "--lr 0.001 --checkpoint-dir run --keep 1 ";
};

TEST_F(Killed, LeavesACheckpointThatLoads) {
  std::set<int64_t> found;
  for (const std::string calls :
       {"write", "fsync", "?rename,?renameat,?renameat2", "?mkdir,?mkdirat", "?symlink,?symlinkat",
        "?unlink,?unlinkat,?rmdir"}) {
    int nth = 1;
    for (int code = kKilled; code != 0; ++nth) {
      ASSERT_LT(nth, kMostCalls) << calls;
      const Result result = go_on(calls, nth);
      code = result.code;
      ASSERT_TRUE(code == 0 || code == kKilled) << result.output;
      const std::optional<Checkpoint> left = newest_checkpoint(dir_.file("run"));
      ASSERT_TRUE(left.has_value()) << calls << " " << nth;
      EXPECT_TRUE(left->skipped_checkpoints.empty()) << left->skipped_checkpoints.front();
      EXPECT_TRUE(left->state.steps == 4 || left->state.steps == 8) << left->state.steps;
      for (const char* link : {"run/last", "run/best"}) {
        EXPECT_EQ(read_checkpoint(dir_.file(link)).snapshot.variables.size(), 2u) << link;
      }
      found.insert(left->state.steps);
      const CheckpointDirectory next(dir_.file("run"));
      EXPECT_FALSE(fs::exists(dir_.file("run/.temporary"))) << calls << " " << nth;
    }
    EXPECT_GT(nth, 2) << calls << ": nothing was killed";
  }
  EXPECT_EQ(found, (std::set<int64_t>{4, 8}));
}

}  // namespace
}  // namespace fluid::killed_test
