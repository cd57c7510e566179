// Ranks of `fluidrun train` that a shell starts in the environment of torchrun or Slurm; that are
// started differently, or do not come.

#include <unistd.h>

#include "executor/comm/wire.h"
#include "ir/atomic_file.h"
#include "ir/error.h"
#include "tests/support/parallel_test.h"
#include "tests/support/processes.h"

namespace fluid::parallel_start_test {
namespace {

constexpr int kLeastPort = 20000;  // lowest port that a Slurm job gets by its id

/// Whether `port` is free at the moment.
bool free_now(int port) {
  try {
    comm::listen_at("127.0.0.1", port);
    return true;
  } catch (const UserError&) {
    return false;
  }
}

class ParallelStart : public ParallelTest {
 protected:
  /// A shell's two processes, with what is said of both and of each; both end well by themselves.
  /// They train as one process does.
  void expect_trained_with(const std::string& both, const std::string& first,
                           const std::string& second) const {
    const std::string flags = "--dtype f64 --epochs 2 --log-json ";
    const std::string command =
        kFluidrun + " " + train(flags + "log.json --batch 6 --first-timeout 60 --comm-timeout 60");
    const Result two =
        run_command("export OMP_NUM_THREADS=1 " + both + "; { " + second + command + "; } & " +
                    first + command + "; rank0=$?; wait $!; echo exit codes $rank0 $?");
    EXPECT_NE(two.output.find("exit codes 0 0\n"), std::string::npos) << two.output;
    EXPECT_NE(two.output.find("steps of 6 on each of 2 ranks"), std::string::npos) << two.output;
    ASSERT_EQ(run(train(flags + "one.json --batch 12")).code, 0);
    expect_losses("log.json", "one.json");
  }
  /// Two ranks with flags of their own, of which the second trains `program`.
  Result launch_differing(const std::string& first, const std::string& second,
                          const std::string& program = "line.fir") const {
    write_plain(dir_.file("differing"), "[ $RANK = 0 ] && exec " + kFluidrun + " " + train(first) +
                                            "\nexec " + kFluidrun + " " + train(second, program) +
                                            "\n");
    return run("launch --nproc 2 --log-dir logs -- sh differing");
  }
  /// Expects the error that the second rank has another `what`. `how`: description of the
  /// difference.
  void expect_mismatch_error(const Result& result, const std::string& what,
                             const std::string& how = "") const {
    const std::string said =
        "fluidrun: rank 1 has another " + what + " than rank 0: start all ranks alike" + how + "\n";
    EXPECT_EQ(result.code, 1) << result.output;
    EXPECT_NE(result.output.find(said), std::string::npos) << result.output;
  }
};

TEST_F(ParallelStart, TrainsInTorchrunsEnvironment) {
  const std::string port = std::to_string(testing::free_port());
  expect_trained_with("WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=localhost MASTER_PORT=" + port,
                      "RANK=0 LOCAL_RANK=0 ", "RANK=1 LOCAL_RANK=1 ");
}

/// Where torchrun's own agent listens at the port that it names.
TEST_F(ParallelStart, TrainsBesideTorchrunsAgent) {
  comm::Socket agent = comm::listen_at("127.0.0.1", 0);
  while (!free_now(comm::port_of(agent) + 1)) agent = comm::listen_at("127.0.0.1", 0);
  expect_trained_with(
      "WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=localhost TORCHELASTIC_RUN_ID=none "
      "TORCHELASTIC_RESTART_COUNT=3 TORCHELASTIC_USE_AGENT_STORE=True MASTER_PORT=" +
          std::to_string(comm::port_of(agent)),
      "RANK=0 LOCAL_RANK=0 ", "RANK=1 LOCAL_RANK=1 ");
}

TEST_F(ParallelStart, TrainsUnderTorchrunItself) {
  if (run_command("command -v torchrun").code != 0) GTEST_SKIP() << "torchrun is not installed";
  const std::string flags = "--dtype f64 --epochs 2 --log-json ";
  const Result result =
      run_command("OMP_NUM_THREADS=1 torchrun --no-python --nproc-per-node 2 " + kFluidrun + " " +
                  train(flags + "log.json --batch 6 --save torch.safetensors"));
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_TRUE(std::filesystem::exists(dir_.file("torch.safetensors")));
  ASSERT_EQ(run(train(flags + "one.json --batch 12")).code, 0);
  expect_losses("log.json", "one.json");
}

TEST_F(ParallelStart, TrainsInSlurmsEnvironment) {
  int job = 4'560'000 + getpid() % 10'000;
  while (!free_now(kLeastPort + job % 10'000)) ++job;
  expect_trained_with(
      "SLURM_NTASKS=2 SLURM_STEP_ID=0 SLURM_LAUNCH_NODE_IPADDR=127.0.0.1 "
      "SLURM_JOB_ID=" +
          std::to_string(job),
      "SLURM_PROCID=0 SLURM_LOCALID=0 ", "SLURM_PROCID=1 SLURM_LOCALID=1 ");
}

TEST_F(ParallelStart, RanksOfOtherCommandLinesAreTold) {
  expect_mismatch_error(launch_differing("--batch 10", "--batch 11"), "command line",
                        " (rank 1: batch 11 (rank 0: 10))");
  expect_mismatch_error(
      launch_differing("", "--bucket 1KiB --reduce-dtype bf16"), "set of options",
      " (rank 1: bucket 1024 (rank 0: 26214400), reduce-dtype bf16 (rank 0: recorded))");
}

TEST_F(ParallelStart, RanksOfOtherProgramsAreTold) {
  const std::string line = kLine;
  const auto replaced = [&](const std::string& from, const std::string& to) {
    return std::string(line).replace(line.find(from), from.size(), to);
  };
  write_plain(dir_.file("op.fir"), replaced("square(", "abs("));
  write_plain(dir_.file("recipe.fir"), replaced("lr = 0.01", "lr = 0.02"));
  // With another variable besides, whose value rank 0 would never send.
  write_plain(dir_.file("state.fir"), replaced("\"sgd\", lr = 0.01", "\"momentum\", lr = 0.01"));
  expect_mismatch_error(launch_differing("", "", "op.fir"), "program");
  expect_mismatch_error(launch_differing("", "", "recipe.fir"), "program");
  const std::string resuming = "--zero 1 --checkpoint-dir ck --resume";
  expect_mismatch_error(launch_differing(resuming, resuming, "state.fir"), "program");
  // The same program in another file format is not a different program.
  ASSERT_EQ(run("opt line.fir --pass dce -o line.fluid").code, 0);
  const Result same = launch_differing("", "", "line.fluid");
  EXPECT_EQ(same.code, 0) << same.output;
}

TEST_F(ParallelStart, ARankThatDoesNotComeIsWaitedForAsLongAsSaid) {
  before_ = "export WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=" +
            std::to_string(testing::free_port()) + "; ";
  const std::string waiting = train("--first-timeout 0.7");
  for (const auto& [rank, said] :
       {std::pair("0",
                  "fluidrun: rank 1 of 2 did not join within 0.7 s: start all ranks with the same "
                  "address, port and size\n"),
        {"1", "fluidrun: rank 0 does not answer at 127.0.0.1, port "}}) {
    const auto begin = std::chrono::steady_clock::now();
    const Result result = run_command(before_ + "RANK=" + rank + " " + kFluidrun + " " + waiting);
    EXPECT_EQ(result.code, 3) << result.output;
    EXPECT_NE(result.output.find(said), std::string::npos) << result.output;
    const auto waited = std::chrono::steady_clock::now() - begin;
    EXPECT_GE(waited, std::chrono::milliseconds(700));
    EXPECT_LT(waited, std::chrono::seconds(30)) << "the default is 300 s";
  }
}

}  // namespace
}  // namespace fluid::parallel_start_test
