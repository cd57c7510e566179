// Tests the work that only rank 0 does, when the ranks share no disk and the disk of rank 0 is slow
// or full. Also runs a user's program on several processes.

#include <random>
#include <regex>

#include "tests/support/full_run.h"
#include "tests/support/parallel_test.h"

namespace fluid::parallel_ranks_test {
namespace {

namespace fs = std::filesystem;

class RanksTest : public ParallelTest {
 protected:
  std::string train(const std::string& flags) const {
    return kFluidrun + " " + ParallelTest::train("--dtype f64 " + flags);
  }
  /// Two ranks, of which the second has a directory of its own, run `before` and then train.
  Result launch(const std::string& flags, const std::string& before = "") const {
    std::ofstream(dir_.file("rank"))
        << "if [ $RANK = 1 ]; then mkdir -p other && cp line.fir other "
           "&& cd other && exec "
        << train(flags) << "; fi\nexec " << before << train(flags) << "\n";
    return run("launch --nproc 2 -- sh rank");
  }
  void expect_losses_of_one_process(const std::string& log) const {
    const Result one = run_command(train("--batch 12 --epochs 2 --log-json one.json"));
    ASSERT_EQ(one.code, 0) << one.output;
    expect_losses(log, "one.json");
  }
  /// Returns a command prefix that injects `fault` into calls that flush a file.
  std::string with_fault(const std::string& fault) const {
    return "env GOMP_SPINCOUNT=1000 ASAN_OPTIONS=detect_leaks=0 strace -f -o trace -e trace=fsync "
           "-e "
           "inject=fsync:" +
           fault + " ";
  }
  bool can_trace() const { return run_command("strace -f -o trace true").code == 0; }
};

TEST_F(RanksTest, OnlyTheFirstNeedsTheCheckpoints) {
  const std::string flags = "--batch 6 --epochs 2 --checkpoint-dir ck --log-json log.json ";
  const Result begun = launch(flags + "--checkpoint-every 3 --max-steps 7");
  ASSERT_EQ(begun.code, 0) << begun.output;
  const Result more = launch(flags + "--resume");
  EXPECT_EQ(more.code, 0) << more.output;
  EXPECT_NE(more.output.find("going on from ck/step-0000000007: step 7 in epoch 1"),
            std::string::npos)
      << more.output;
  EXPECT_FALSE(fs::exists(dir_.file("other/ck")));
  expect_losses_of_one_process("log.json");
}

TEST_F(RanksTest, OnlyTheFirstNeedsTheParameters) {
  ASSERT_EQ(launch("--batch 6 --save w.safetensors --max-steps 3").code, 0);
  const Result more = launch("--batch 6 --params w.safetensors --max-steps 3");
  EXPECT_EQ(more.code, 0) << more.output;
  EXPECT_FALSE(fs::exists(dir_.file("other/w.safetensors")));
}

TEST_F(RanksTest, WaitForTheFirstToSave) {
  if (!can_trace()) GTEST_SKIP() << "no strace here, or nothing can be traced";
  // A checkpoint takes longer than a rank may be late.
  const Result slow = launch(
      "--batch 6 --epochs 2 --checkpoint-dir ck --checkpoint-every 5 --max-steps 6 --comm-timeout "
      "1",
      with_fault("delay_enter=400000"));
  EXPECT_EQ(slow.code, 0) << slow.output;
  EXPECT_TRUE(fs::exists(dir_.file("ck/step-0000000006")));
}

TEST_F(RanksTest, ACheckpointThatFailsLeavesTheSavedParameters) {
  if (!can_trace()) GTEST_SKIP() << "no strace here, or nothing can be traced";
  const std::string flags =
      "--batch 6 --checkpoint-dir ck --checkpoint-every 4 --save w.safetensors";
  const std::string refused = "No space left on device";
  for (const std::string when : {"1", "1+"}) {  // the checkpoint's first file; and all others
    fs::remove_all(dir_.file("ck"));
    fs::remove(dir_.file("w.safetensors"));
    const Result full = run_command(with_fault("error=ENOSPC:when=" + when) + train(flags));
    EXPECT_EQ(full.code, 1) << full.output;
    const size_t line = full.output.find("fluidrun: ");
    ASSERT_NE(line, std::string::npos) << full.output;
    const std::string said = full.output.substr(line);
    EXPECT_EQ(std::ranges::count(said, '\n'), 1) << full.output;
    EXPECT_NE(said.find(refused), std::string::npos) << said;
    EXPECT_NE(said.find("ck/.temporary"), std::string::npos) << said;
    EXPECT_EQ(said.find("w.safetensors") != std::string::npos, when == "1+") << said;
    EXPECT_EQ(fs::exists(dir_.file("w.safetensors")), when == "1");
    EXPECT_FALSE(fs::exists(dir_.file("ck/last")));
  }
}

TEST_F(RanksTest, AFailureNamesItsStepAndARestartGoesOn) {
  const std::string command = train(
      "--batch 6 --epochs 1000 --max-steps 2000 --checkpoint-dir ck --checkpoint-every 100 "
      "--comm-timeout 1");
  std::ofstream(dir_.file("rank"))
      << "if [ $RANK = 1 ]; then mkdir -p other && cp line.fir other && cd other; fi\n"
      << "[ $RANK.$TORCHELASTIC_RESTART_COUNT = 1.0 ] || exec " << command << "\n"
      << command << " &\n"
      << "while [ ! -e ../ck/last ]; do sleep 0.02; done\n"
      << "kill -STOP $!\n"
      << "wait $!\n";
  const Result result = run("launch --nproc 2 --max-restarts 1 -- sh rank");
  EXPECT_EQ(result.code, 0) << result.output;
  const std::regex failure("fluidrun: after step [0-9]+: rank 0 cannot complete .*rank 1 ");
  EXPECT_TRUE(std::regex_search(result.output, failure)) << result.output;
  const std::regex going_on("going on from ck/step-[0-9]+: step [0-9]+ in epoch ");
  EXPECT_TRUE(std::regex_search(result.output, going_on)) << result.output;
}

/// A send whose peer dies just then is never answered: the survivor says so all the same, before
/// the launcher ends it.
TEST_F(RanksTest, ADeathIsNoticedLongBeforeTheTimeOut) {
  std::mt19937 random(11);
  const int count = testing::is_full_run() ? 40 : 4;
  std::ofstream(dir_.file("mortal"))
      << "if [ $RANK = $VICTIM ]; then\n"
         "  { while [ ! -s $LOG ]; do sleep 0.05; done; sleep $DELAY; kill -KILL $$; } &\n"
         "fi\n"
         "exec "
      << train("--batch 6 --epochs 100000 --log-json $LOG") << "\n";
  for (int i = 0; i < count; ++i) {
    const double delay = static_cast<double>(random() % 500) / 1000;
    const Result result =
        run("launch --nproc 2 -- env VICTIM=" + std::to_string(i % 2) + " LOG=log" +
            std::to_string(i) + " DELAY=" + std::to_string(delay) + " sh mortal");
    EXPECT_NE(result.code, 0) << result.output;
    EXPECT_TRUE(std::regex_search(result.output, std::regex("fluidrun: after step [0-9]+: ")))
        << result.output;
  }
}

/// The example prints the same lines in one process and in several, however they are started.
TEST_F(RanksTest, TheExampleComesToTheSameFigures) {
  const std::string example =
      std::string(FLUID_BINARY_DIR) + "/examples/ddp_mnist --data digits --steps 12";
  std::vector<std::string> ways = {example, kFluidrun + " launch --nproc 2 -- " + example,
                                   kFluidrun + " launch --nproc 3 -- " + example};
  if (run_command("command -v torchrun").code == 0) {
    ways.push_back("OMP_NUM_THREADS=1 torchrun --no-python --nproc-per-node 2 " + example);
  }
  std::optional<std::pair<double, double>> alone;
  for (const std::string& way : ways) {
    const Result result = run_command(way);
    ASSERT_EQ(result.code, 0) << result.output;
    std::smatch line;
    const std::regex figures("epoch 1/1  loss ([0-9.]+)  accuracy ([0-9.]+)\n");
    ASSERT_TRUE(std::regex_search(result.output, line, figures)) << way << ": " << result.output;
    const std::pair found = {std::stod(line[1]), std::stod(line[2])};
    if (!alone) alone = found;
    EXPECT_GT(found.first, 1) << "after so few steps";
    EXPECT_NEAR(found.first, alone->first, 2e-4) << way;
    EXPECT_NEAR(found.second, alone->second, 1e-3) << way;
  }
}

}  // namespace
}  // namespace fluid::parallel_ranks_test
