// Tests signals during training: nothing is lost, and no file is incomplete.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <utility>

#include "frontend/files/safetensors.h"
#include "ir/atomic_file.h"
#include "tests/support/fluidrun_test.h"

namespace fluid::signals_test {
namespace {

/// A training run in the background, observed from outside.
class Background : public FluidrunTest {
 protected:
  void TearDown() override {
    if (child_ > 0) kill(child_, SIGKILL);
    if (child_ > 0) waitpid(child_, nullptr, 0);
  }

  /// Starts `fluidrun <arguments>` after the shell commands `before`.
  void start(const std::string& arguments, const std::string& before = "") {
    child_ = fork();
    if (child_ != 0) return;
    const std::string command = "cd " + dir_.path() + " && " + before + "exec " + kFluidrun + " " +
                                arguments + " > log 2>&1";
    execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    _exit(127);
  }

  std::string log() const {
    const std::string path = dir_.file("log");
    return std::filesystem::exists(path) ? read_file(path) : "";
  }
  bool saved() const { return std::filesystem::exists(dir_.file("w.safetensors")); }
  /// Exit code of the process, as a shell reports it.
  int exit_code() {
    int status = 0;
    waitpid(child_, &status, 0);
    child_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  pid_t child_ = -1;
};

/// A run without an end that has done an epoch.
class Signals : public Background {
 protected:
  void SetUp() override {
    Background::SetUp();
    if (!IsSkipped()) train();
  }

  void train(const std::string& before = "") {
    start(
        "train line.fir --data 'synthetic-linear?n=1000' --batch 100 --epochs 100000000 "
        "--save w.safetensors --checkpoint-dir run --checkpoint-every 1000000000",
        before);
    ASSERT_TRUE(until([&] { return log().find(" 2/100000000 ") != std::string::npos; })) << log();
  }

  /// How many it has written.
  int64_t checkpoints() const {
    int64_t n = 0;
    for (const auto& entry : std::filesystem::directory_iterator(dir_.file("run"))) {
      n += entry.path().filename().string().starts_with("step-") ? 1 : 0;
    }
    return n;
  }
};

/// A run that waits for data from a FIFO. After load(), the FIFO has no writer yet.
class StartingUp : public Background {
 protected:
  void load() {
    ASSERT_EQ(mkfifo(dir_.file("data").c_str(), 0600), 0);
    start(
        "train line.fir --data 'csv:data?label=y' --batch 1 --epochs 100000000 "
        "--save w.safetensors");
    const auto opened = [&] {  // fails while the FIFO has no reader
      data_ = open(dir_.file("data").c_str(), O_WRONLY | O_NONBLOCK);
      return data_ >= 0;
    };
    ASSERT_TRUE(until(opened)) << log();
  }
  void TearDown() override {
    if (data_ >= 0) close(data_);
    Background::TearDown();
  }

  int data_ = -1;
};

TEST_F(Signals, InterruptFinishesTheStepAndSaves) {
  kill(child_, SIGINT);
  EXPECT_EQ(exit_code(), 128 + SIGINT);
  EXPECT_NE(log().find("stopped after step "), std::string::npos);
  EXPECT_NE(log().find("saved w.safetensors"), std::string::npos);
  EXPECT_EQ(read_safetensors(dir_.file("w.safetensors")).tensors.size(), 1u);
  EXPECT_EQ(checkpoints(), 1);
}

TEST_F(Signals, TerminateAndHangUpDoTheSame) {
  for (const int number : {SIGTERM, SIGHUP}) {
    SCOPED_TRACE(number);
    if (child_ < 0) {
      std::filesystem::remove_all(dir_.file("run"));
      std::filesystem::remove(dir_.file("log"));
      train();
    }
    kill(child_, number);
    EXPECT_EQ(exit_code(), 128 + number);
    EXPECT_NE(log().find("saved w.safetensors"), std::string::npos);
    EXPECT_EQ(checkpoints(), 1);
  }
}

TEST_F(Background, HangUpStaysIgnoredUnderNohup) {
  start(
      "train line.fir --data 'synthetic-linear?n=1000' --batch 100 --epochs 100000000 "
      "--save w.safetensors",
      "trap '' HUP; ");
  ASSERT_TRUE(until([&] { return log().find(" 2/100000000 ") != std::string::npos; })) << log();
  kill(child_, SIGHUP);
  kill(child_, SIGTERM);
  EXPECT_EQ(exit_code(), 128 + SIGTERM);
  EXPECT_TRUE(saved());
}

TEST_F(StartingUp, ASignalToStopEndsIt) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    SCOPED_TRACE(number);
    load();
    kill(child_, number);
    EXPECT_EQ(exit_code(), 128 + number);
    EXPECT_NE(log().find("stopped before the first step"), std::string::npos) << log();
    EXPECT_FALSE(saved());
    close(std::exchange(data_, -1));
    std::filesystem::remove(dir_.file("data"));
  }
}

TEST_F(StartingUp, TheSignalToSaveWaitsForTheFirstStep) {
  load();
  kill(child_, SIGUSR1);
  constexpr std::string_view kData = "a,b,y\n1,2,3\n2,3,4\n";
  ASSERT_EQ(write(data_, kData.data(), kData.size()), static_cast<ssize_t>(kData.size()));
  close(std::exchange(data_, -1));
  EXPECT_TRUE(until([&] { return saved(); })) << log();
  kill(child_, SIGTERM);
  EXPECT_EQ(exit_code(), 128 + SIGTERM);
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
  EXPECT_EQ(exit_code(), 128 + SIGINT);
  EXPECT_EQ(checkpoints(), 2);
}

}  // namespace
}  // namespace fluid::signals_test
