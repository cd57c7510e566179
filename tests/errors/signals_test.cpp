// What a signal does to a training run: nothing is lost, and nothing is left half done.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "frontend/files/safetensors.h"
#include "ir/atomic_file.h"
#include "tests/support/fluidrun_test.h"

namespace fluid {
namespace {

/// A training run without an end, observed from outside.
class Signals : public FluidrunTest {
 protected:
  void SetUp() override {
    FluidrunTest::SetUp();
    if (IsSkipped()) return;
    child_ = fork();
    if (child_ == 0) {
      const std::string command = "cd " + dir_.path() + " && exec " + kFluidrun +
                                  " train line.fir --data 'synthetic-linear?n=1000' --batch 100 "
                                  "--epochs 100000000 --save w.safetensors --checkpoint-dir run "
                                  "--checkpoint-every 1000000000 > log 2>&1";
      execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      _exit(127);
    }
    ASSERT_TRUE(until([&] { return log().find(" 2/100000000 ") != std::string::npos; })) << log();
  }
  void TearDown() override {
    if (child_ > 0) kill(child_, SIGKILL);
    if (child_ > 0) waitpid(child_, nullptr, 0);
  }

  std::string log() const {
    const std::string path = dir_.file("log");
    return std::filesystem::exists(path) ? read_file(path) : "";
  }
  /// How many it has written.
  int64_t checkpoints() const {
    int64_t n = 0;
    for (const auto& entry : std::filesystem::directory_iterator(dir_.file("run"))) {
      n += entry.path().filename().string().starts_with("step-") ? 1 : 0;
    }
    return n;
  }
  bool saved() const { return std::filesystem::exists(dir_.file("w.safetensors")); }
  /// How it ended, as a shell tells it.
  int exit_code() {
    int status = 0;
    waitpid(child_, &status, 0);
    child_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  pid_t child_ = -1;
};

TEST_F(Signals, InterruptFinishesTheStepAndSaves) {
  kill(child_, SIGINT);
  EXPECT_EQ(exit_code(), 0);
  EXPECT_NE(log().find("stopped after step "), std::string::npos);
  EXPECT_NE(log().find("saved w.safetensors"), std::string::npos);
  EXPECT_EQ(read_safetensors(dir_.file("w.safetensors")).tensors.size(), 1u);
  EXPECT_EQ(checkpoints(), 1);
}

TEST_F(Signals, TerminateDoesTheSame) {
  kill(child_, SIGTERM);
  EXPECT_EQ(exit_code(), 0);
  EXPECT_NE(log().find("saved w.safetensors"), std::string::npos);
  EXPECT_EQ(checkpoints(), 1);
}

TEST_F(Signals, ASecondOneQuits) {
  kill(child_, SIGSTOP);  // so that both arrive before the step can end
  kill(child_, SIGINT);
  kill(child_, SIGTERM);
  kill(child_, SIGCONT);
  const int code = exit_code();
  EXPECT_TRUE(code == 128 + SIGINT || code == 128 + SIGTERM) << code;
  EXPECT_FALSE(saved());
}

TEST_F(Signals, UserSignalSavesAndGoesOn) {
  kill(child_, SIGUSR1);
  ASSERT_TRUE(until([&] { return saved() && checkpoints() == 1; }));
  const size_t length = log().size();
  EXPECT_TRUE(until([&] { return log().size() > length + 100; })) << "it does not go on";
  kill(child_, SIGINT);
  EXPECT_EQ(exit_code(), 0);
  EXPECT_EQ(checkpoints(), 2);
}

}  // namespace
}  // namespace fluid
