// Small programs as ranks under `fluidrun launch`: how they find each other, end and fail.

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "executor/comm/wire.h"
#include "ir/atomic_file.h"
#include "tests/support/fluidrun_test.h"

namespace fluid::launch_test {
namespace {

using Clock = std::chrono::steady_clock;

const std::string kRendezvousProgram = std::string(FLUID_BINARY_DIR) + "/rendezvous_program";

class Launch : public FluidrunTest {
 protected:
  void TearDown() override {
    if (launcher_ > 0) kill(launcher_, SIGKILL);
    if (launcher_ > 0) waitpid(launcher_, nullptr, 0);
  }

  /// A shell script as the program of every rank.
  Result launch(const std::string& flags, const std::string& script) const {
    std::ofstream(dir_.file("script")) << script;
    return run("launch " + flags + " -- sh script");
  }
  /// Like launch(), but in the background. The output goes to the file "out".
  void start(const std::string& flags, const std::string& script) {
    std::ofstream(dir_.file("script")) << script;
    launcher_ = fork();
    if (launcher_ > 0) return;
    const std::string command = "cd " + dir_.path() + " && exec " + kFluidrun + " launch " + flags +
                                " -- sh script > out 2>&1";
    execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    _exit(127);
  }
  int exit_code() {
    int status = 0;
    waitpid(launcher_, &status, 0);
    launcher_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  std::string text_of(const std::string& file) const {
    return std::filesystem::exists(dir_.file(file)) ? read_file(dir_.file(file)) : "";
  }
  /// Waits until as many files say so.
  bool ready(int ranks, const std::string& name = "ready") const {
    return until([&] {
      for (int rank = 0; rank < ranks; ++rank) {
        if (!text_of(name + std::to_string(rank)).ends_with('\n')) return false;
      }
      return true;
    });
  }
  /// Whether the processes whose ids the ranks wrote are gone.
  bool gone(int ranks, const std::string& name = "ready") const {
    return until([&] {
      for (int rank = 0; rank < ranks; ++rank) {
        if (kill(std::stoi(text_of(name + std::to_string(rank))), 0) == 0) return false;
      }
      return true;
    });
  }

  pid_t launcher_ = -1;
};

void expect_has(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST_F(Launch, RanksMeet) {
  const Result result = run("launch --nproc 3 --log-dir logs -- " + kRendezvousProgram);
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.output, "restart 0, rank 0 of 3 sees 0=0 1=1 2=2\n");
  EXPECT_EQ(text_of("logs/workerlog.0"), result.output);
  EXPECT_EQ(text_of("logs/workerlog.2"), "restart 0, rank 2 of 3 sees 0=0 1=1 2=2\n");
}

TEST_F(Launch, NodesMeet) {
  const std::string flags = " launch --nproc 2 --nnodes 2 --master 127.0.0.1:$port --node-rank ";
  // A port that was free a moment ago, as the first node's rank 0 will find it.
  const Result port = run("launch -- sh -c 'echo $MASTER_PORT'");
  ASSERT_EQ(port.code, 0) << port.output;
  const Result result =
      run_command("port=" + port.output.substr(0, port.output.size() - 1) + "; " + kFluidrun +
                  flags + "1 --log-dir logs -- " + kRendezvousProgram + " & " + kFluidrun + flags +
                  "0 --log-dir logs -- " + kRendezvousProgram + "; wait");
  expect_has(result.output, "restart 0, rank 0 of 4 sees 0=0 1=1 2=0 3=1\n");
  EXPECT_EQ(text_of("logs/workerlog.3"), "restart 0, rank 3 of 4 sees 0=0 1=1 2=0 3=1\n");
}

TEST_F(Launch, TorchrunStartsRanksToo) {
  if (run_command("command -v torchrun").code != 0) GTEST_SKIP() << "torchrun is not installed";
  // Rank 1 fails at first, and torchrun starts all again.
  std::ofstream(dir_.file("meet")) << "[ $RANK.$TORCHELASTIC_RESTART_COUNT = 1.0 ] && exit 5\n"
                                   << "exec " << kRendezvousProgram << "\n";
  const Result result =
      run_command("torchrun --standalone --no-python --nproc-per-node 2 --max-restarts 1 sh meet");
  EXPECT_EQ(result.code, 0);
  expect_has(result.output, "restart 1, rank 0 of 2 sees 0=0 1=1\n");
  expect_has(result.output, "restart 1, rank 1 of 2 sees 0=0 1=1\n");
}

TEST_F(Launch, APortInUseIsSaidAtOnce) {
  const comm::Socket other = comm::listen_at("127.0.0.1", 0);
  const std::string port = std::to_string(comm::port_of(other));
  const Clock::time_point begin = Clock::now();
  const Result result =
      run("launch --nproc 2 --master 127.0.0.1:" + port + " -- " + kRendezvousProgram);
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(6));
  EXPECT_EQ(result.code, 1);
  expect_has(result.output, "rank 0 cannot listen on port " + port + ": Address already in use");
  expect_has(result.output, "fluidrun: rank 0 ended with exit code 1; stopping the others\n");
}

TEST_F(Launch, TellsEachRankItsPlace) {
  const Result result = launch("--nproc 2 --nnodes 3 --node-rank 1 --master host:4000",
                               "echo $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE "
                               "$MASTER_ADDR $MASTER_PORT $OMP_DYNAMIC $OMP_WAIT_POLICY\n");
  EXPECT_EQ(result.output, "2 6 0 2 host 4000 false passive\n");
}

TEST_F(Launch, SharesTheCoresUnlessTold) {
  before_ = "export OMP_WAIT_POLICY=active; ";
  const std::string show = "echo $OMP_NUM_THREADS $OMP_WAIT_POLICY\n";
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  EXPECT_EQ(launch("--nproc 2", show).output, std::to_string(std::max(1, cores / 2)) + " active\n");
  before_ += "export OMP_NUM_THREADS=7; ";
  EXPECT_EQ(launch("--nproc 2", show).output, "7 active\n");
}

TEST_F(Launch, AutoIsARankACoreWhereThereIsNoGpu) {
  before_ += "FLUID_GPU_LIBRARY=" + std::string(FLUID_BINARY_DIR) + "/gpu_libraries/no_gpus.so ";
  const std::string cores = std::to_string(std::max(1U, std::thread::hardware_concurrency()));
  const Result result = launch("--nproc auto", "[ $RANK = 0 ] && echo $WORLD_SIZE; true\n");
  EXPECT_EQ(result.output,
            "fluidrun: --nproc auto: " + cores + (cores == "1" ? " rank" : " ranks") +
                ", one per core, as there is no usable GPU: the NVIDIA driver finds no GPU\n" +
                cores + "\n");
  expect_error("launch --nproc some -- true", "must be a positive integer, not some, or auto");
}

TEST_F(Launch, PassesArgumentsOnAsTheyAre) {
  const Result result = run("launch -- printf '%s;' '[a,b]' '' --help -- '\"q\"' 'a b'");
  EXPECT_EQ(result.output, "[a,b];;--help;--;\"q\";a b;");
  EXPECT_EQ(result.code, 0);
}

TEST_F(Launch, RunsItsOwnSubcommands) {
  const Result result = run("launch --nproc 2 -- show line.fir");
  EXPECT_EQ(result.code, 0);
  expect_has(result.output, "program @line {");
}

/// Rank 0 alone reads the file; all have the same variables all the same.
TEST_F(Launch, StartsFromAFileOfParameters) {
  const std::string train = "train mnist_fluid --data digits?n=60 --batch 20 ";
  ASSERT_EQ(run(train + "--save m.st").code, 0);
  const Result result = run("launch --nproc 2 -- " + train + "--params m.st --save n.st");
  EXPECT_EQ(result.code, 0) << result.output;
}

TEST_F(Launch, LosesNoOutput) {
  const Result result = launch("--nproc 2 --log-dir logs",
                               "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done\n");
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(std::ranges::count(result.output, '\n'), 20000);
  EXPECT_TRUE(result.output.ends_with("line 19999\n"));
  EXPECT_TRUE(text_of("logs/workerlog.0") == result.output);
  EXPECT_TRUE(text_of("logs/workerlog.1") == result.output);
}

TEST_F(Launch, NamesTheRankThatFailsAndStopsTheOthers) {
  const Clock::time_point begin = Clock::now();
  const Result result = launch("--nproc 3 --log-dir logs",
                               "trap '' TERM; echo $$ > ready$RANK\n"  // hears no friendly word
                               "if [ $RANK = 1 ]; then\n"
                               "  for i in 1 2 3 4 5 6 7 8 9 10 11; do echo line $i; done\n"
                               "  sleep 0.3; printf 'no such file' >&2; exit 7\n"
                               "fi\n"
                               "while :; do sleep 0.1; done\n");
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(6));
  EXPECT_EQ(result.code, 7);
  EXPECT_EQ(result.output,
            "fluidrun: rank 1 ended with exit code 7; stopping the others\n"
            "the last lines of rank 1, logs/workerlog.1:\n"
            "line 3\nline 4\nline 5\nline 6\nline 7\nline 8\nline 9\nline 10\nline 11\n"
            "no such file\n");
  EXPECT_TRUE(gone(3));
}

TEST_F(Launch, NamesTheSignalThatKillsARank) {
  const Result result = launch("--nproc 3",
                               "echo $$ > ready$RANK; [ $RANK = 2 ] && kill -9 $$\n"
                               "while :; do sleep 0.1; done\n");
  EXPECT_EQ(result.code, 128 + SIGKILL);
  EXPECT_EQ(result.output,
            "fluidrun: rank 2 was killed by signal 9 (Killed); stopping the others\n");
}

/// The first to end may only have missed the one that failed, whose exit code is the same.
TEST_F(Launch, ShowsTheLastLinesOfAllThatMayBeTheCause) {
  const Result result = launch("--nproc 4 --log-dir logs",
                               "case $RANK in\n"
                               "  0) echo rank 1 is gone;;\n"
                               "  1) sleep 0.5; echo the GPU has failed;;\n"
                               "  2) sleep 0.2; echo rank 1 is gone;;\n"
                               "  3) sleep 0.2; exit 0;;\n"
                               "esac\n"
                               "exit 3\n");
  EXPECT_EQ(result.code, 3);
  EXPECT_EQ(result.output,
            "rank 1 is gone\n"
            "fluidrun: rank 0 ended with exit code 3\n"
            "the last lines of rank 1, logs/workerlog.1:\n"
            "the GPU has failed\n");
}

/// One that fails once the others are being stopped fails because of that.
TEST_F(Launch, ShowsNoLinesOfRanksThatItStops) {
  const Result result = launch("--nproc 3 --log-dir logs",
                               "[ $RANK = 2 ] && trap 'echo rank 0 is gone; exit 3' TERM\n"
                               "echo $$ > ready$RANK\n"
                               "while [ $RANK -gt 0 ]; do sleep 0.1; done\n"
                               "sleep 0.5; echo the GPU has failed; exit 3\n");
  EXPECT_EQ(result.code, 3);
  EXPECT_EQ(result.output,
            "the GPU has failed\n"
            "fluidrun: rank 0 ended with exit code 3; stopping the others\n");
}

TEST_F(Launch, LetsRanksEndOneByOne) {
  const Result result = launch("--nproc 3", "sleep 0.$RANK; echo bye\n");
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.output, "bye\n");
}

TEST_F(Launch, StartsAgainAfterAFailure) {
  std::ofstream(dir_.file("meet")) << "[ $RANK = 1 ] && [ $TORCHELASTIC_RESTART_COUNT = 0 ] && "
                                      "exit 5\n"
                                   << kRendezvousProgram << "\n";
  const Result result = run("launch --nproc 2 --max-restarts 2 --log-dir logs -- sh meet");
  EXPECT_EQ(result.code, 0);
  expect_has(result.output,
             "fluidrun: rank 1 ended with exit code 5; stopping the others\n"
             "fluidrun: starting all ranks again: restart 1 of 2\n"
             "restart 1, rank 0 of 2 sees 0=0 1=1\n");
  EXPECT_EQ(text_of("logs/workerlog.1"),
            "fluidrun: restart 1\nrestart 1, rank 1 of 2 sees 0=0 1=1\n");
}

TEST_F(Launch, GivesUpAfterTheLastRestart) {
  const Result result = launch("--nproc 2 --max-restarts 2", "exit $((RANK * 4))\n");
  EXPECT_EQ(result.code, 4);
  expect_has(result.output, "restart 2 of 2\nfluidrun: rank 1 ended with exit code 4");
}

constexpr const char* kCareful =
    "trap 'echo saved >> ready$RANK; echo saved; exit 0' INT TERM\n"
    "echo $$ > ready$RANK\n"
    "while :; do sleep 0.05; done\n";

TEST_F(Launch, AFirstSignalLetsRanksFinish) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    SCOPED_TRACE(number);
    for (const char* rank : {"0", "1"}) {
      std::filesystem::remove(dir_.file(std::string("ready") + rank));
    }
    start("--nproc 2 --max-restarts 3", kCareful);
    ASSERT_TRUE(ready(2));
    kill(launcher_, number);
    EXPECT_EQ(exit_code(), 0);
    const std::string out = text_of("out");
    expect_has(out, "fluidrun: stopping: the ranks may finish; another signal kills them\n");
    expect_has(out, "\nsaved\n");
    EXPECT_TRUE(text_of("ready1").ends_with("\nsaved\n"));
  }
}

TEST_F(Launch, RanksThatSayThatTheyWereStoppedHaveNotFailed) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    SCOPED_TRACE(number);
    for (const char* rank : {"0", "1"}) {
      std::filesystem::remove(dir_.file(std::string("ready") + rank));
    }
    start("--nproc 2 --max-restarts 3",
          "trap 'exit 130' INT; trap 'exit 143' TERM\n"
          "echo $$ > ready$RANK\n"
          "while :; do sleep 0.05; done\n");
    ASSERT_TRUE(ready(2));
    kill(launcher_, number);
    EXPECT_EQ(exit_code(), 128 + number);
    EXPECT_EQ(text_of("out").find("ended with exit code"), std::string::npos) << text_of("out");
  }
}

TEST_F(Launch, RanksGoOnWhereTheTerminalTakesNothing) {
  for (const char* streams : {"> /dev/full", "2> /dev/full", "> /dev/full 2>&1"}) {
    SCOPED_TRACE(streams);
    std::filesystem::remove(dir_.file("done0"));
    std::ofstream(dir_.file("script")) << "echo x; echo y >&2; echo z; echo > done$RANK\n";
    const Result result =
        run(std::string("launch --nproc 2 --log-dir logs -- sh script ") + streams);
    EXPECT_EQ(result.code, 1) << result.output;
    EXPECT_TRUE(ready(2, "done"));
    expect_has(text_of("logs/workerlog.0"), "z\n");
  }
}

TEST_F(Launch, ARankThatNeverFinishesIsNotWaitedForWhenAnotherFails) {
  start("--nproc 2",
        "[ $RANK = 1 ] && trap 'exit 3' INT || trap '' INT TERM\n"
        "echo $$ > ready$RANK\n"
        "while :; do sleep 0.05; done\n");
  ASSERT_TRUE(ready(2));
  kill(launcher_, SIGINT);
  EXPECT_EQ(exit_code(), 3);
  EXPECT_TRUE(gone(2));
}

TEST_F(Launch, ASecondSignalKills) {
  start("--nproc 2 --max-restarts 3",
        "trap 'echo asked > asked$RANK' INT; trap '' TERM\n"
        "echo $$ > ready$RANK\n"
        "while :; do sleep 0.05; done\n");
  ASSERT_TRUE(ready(2));
  kill(launcher_, SIGINT);
  ASSERT_TRUE(ready(2, "asked"));
  kill(launcher_, SIGINT);
  EXPECT_EQ(exit_code(), 128 + SIGKILL);
  expect_has(text_of("out"), "fluidrun: killing all ranks\n");
  EXPECT_TRUE(gone(2));
}

TEST_F(Launch, HandsOnTheSignalToSave) {
  start("--nproc 2", "trap 'echo saved > saved$RANK' USR1\n" + std::string(kCareful));
  ASSERT_TRUE(ready(2));
  kill(launcher_, SIGUSR1);
  EXPECT_TRUE(ready(2, "saved"));
  kill(launcher_, SIGTERM);
  EXPECT_EQ(exit_code(), 0);
}

TEST_F(Launch, RanksDoNotOutliveIt) {
  start("--nproc 2", kCareful);
  ASSERT_TRUE(ready(2));
  kill(launcher_, SIGKILL);
  EXPECT_EQ(exit_code(), 128 + SIGKILL);
  EXPECT_TRUE(gone(2));
}

TEST_F(Launch, WhatRanksLeaveBehindIsKilled) {
  const Result result = launch("--nproc 2", "sleep 1000 &\necho $! > ready$RANK\n");
  EXPECT_EQ(result.code, 0);
  EXPECT_TRUE(gone(2));
}

TEST_F(Launch, AStoppedTerminalStopsNothingElse) {
  ASSERT_EQ(mkfifo(dir_.file("fifo").c_str(), 0600), 0);
  const int nobody = open(dir_.file("fifo").c_str(), O_RDWR);  // a reader that reads nothing
  const Result result = run_command(
      "timeout --foreground --preserve-status 5 " + kFluidrun +
      " launch --nproc 2 -- sh -c '[ $RANK = 1 ] && sleep 0.5 && exit 9; yes' > fifo & wait $!");
  close(nobody);
  EXPECT_EQ(result.code, 9);
  // launch waits until the rest is read, until a signal ends it.
  EXPECT_EQ(result.output,
            "fluidrun: rank 1 ended with exit code 9; stopping the others\n"
            "fluidrun: killing all ranks\n");
}

TEST_F(Launch, MistakesAreNamed) {
  expect_error("launch", "launch needs a program after --: fluidrun launch --nproc 2 -- train ...");
  expect_error("launch --nproc 2 --", "launch needs a program after --");
  expect_error("launch --nproc 2 train line.fir",
               "'train' is not expected: write -- before the program");
  expect_error("launch --nprc 2 -- true", "'--nprc' is not expected (did you mean '--nproc'?)");
  expect_error("launch -- trian x",
               "cannot start 'trian': PATH has no such program (did you mean 'train'?)");
  expect_error("launch -- ./absent", "cannot start './absent': No such file or directory");
  expect_error("launch -- ./line.fir", "cannot start './line.fir': Permission denied");
  expect_error("launch -- /", "cannot start '/': Is a directory");
  expect_error("launch --nproc 0 -- true", "--nproc: must be a positive integer, not 0");
  expect_error("launch --nproc 99999 -- true", "--nproc: must be 10000 at most, not 99999");
  expect_error("launch --nnodes 2 --node-rank 2 --master h:1 -- true",
               "--node-rank is 2, but must be less than --nnodes, which is 2");
  expect_error(
      "launch --nnodes 2 -- true",
      "several nodes need --master HOST:PORT, the address of rank 0, the same on every node");
  expect_error("launch --nnodes 2 --master h:1 --max-restarts 1 -- true",
               "--max-restarts needs --nnodes 1: nodes cannot restart together");
  for (const char* bad : {"h", ":5", "h:", "h:x", "h:0", "h:65536", "h:99999999999999999999"}) {
    expect_error(
        std::string("launch --master ") + bad + " -- true",
        std::string("--master is '") + bad + "', but must be HOST:PORT, the address of rank 0");
  }
  expect_error("launch --log-dir line.fir/logs -- true",
               "cannot make --log-dir 'line.fir/logs': Not a directory");
  std::filesystem::create_directories(dir_.file("logs/workerlog.0"));
  expect_error("launch --log-dir logs -- true",
               "cannot write the log 'logs/workerlog.0': Is a directory");
  const Result full = run_command(kFluidrun + " launch -- echo x > /dev/full");
  EXPECT_EQ(full.code, 1);
  expect_has(full.output, "fluidrun: cannot write the output of rank 0: No space left on device");
}

TEST_F(Launch, SaysWhatTheSystemRefuses) {
  std::ofstream(dir_.file("nothing.exe")) << "\x7f"
                                             "ELF";
  std::filesystem::permissions(dir_.file("nothing.exe"), std::filesystem::perms::owner_all);
  const Result broken = run("launch -- ./nothing.exe");
  EXPECT_EQ(broken.code, 126);
  expect_has(broken.output, "fluidrun: cannot start ./nothing.exe: Exec format error\n");
  before_ = "ulimit -n 20; ";
  const Result many = run("launch --nproc 20 -- sleep 1000");
  EXPECT_EQ(many.code, 3);
  expect_has(many.output, "fluidrun: cannot start /");
  expect_has(many.output, "sleep: Too many open files");
}

}  // namespace
}  // namespace fluid::launch_test
