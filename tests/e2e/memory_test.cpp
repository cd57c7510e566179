// The memory that `train` reports explains the memory that the system reports for the process.

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <regex>

#include "frontend/files/npy.h"
#include "tests/support/fluidrun_test.h"

namespace fluid::memory_test {
namespace {

struct Trained {
  std::string text;     ///< text on stderr
  double peak_mib = 0;  ///< peak resident memory
  bool finished = false;
};

Trained train(const std::string& arguments) {
  std::array<int, 2> ends = {};
  EXPECT_EQ(pipe(ends.data()), 0);
  const std::string command = "exec " + kFluidrun + " train " + arguments + " >/dev/null";
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    _exit(127);
  }
  close(ends[1]);
  Trained result;
  std::array<char, 4096> chunk;
  for (ssize_t n; (n = read(ends[0], chunk.data(), chunk.size())) > 0;) {
    result.text.append(chunk.data(), static_cast<size_t>(n));
  }
  close(ends[0]);
  int status = 0;
  struct rusage usage = {};
  wait4(child, &status, 0, &usage);
  result.peak_mib = static_cast<double>(usage.ru_maxrss) / 1024;
  result.finished = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  return result;
}

double mib_after(const std::string& text, const std::string& name) {
  std::smatch found;
  const bool there = std::regex_search(text, found, std::regex(name + " ([0-9.]+) MiB"));
  EXPECT_TRUE(there) << name << " in: " << text;
  return there ? std::stod(found[1]) : 0;
}

/// MiB that came after the start: what the system counted, and what arena and list say.
struct Account {
  double grown = 0, said = 0;
  std::string text;
};

class Memory : public FluidrunTest {
 protected:
  void SetUp() override {
#ifdef FLUID_SANITIZED
    GTEST_SKIP() << "sanitizers keep memory of their own";
#endif
    if (!std::filesystem::exists("/proc/self/smaps")) GTEST_SKIP() << "no /proc/self/smaps";
    FluidrunTest::SetUp();
  }
  static Account account_of(const std::string& arguments) {
    const Trained run = train(arguments);
    EXPECT_TRUE(run.finished) << run.text;
    Account account{.grown = run.peak_mib - mib_after(run.text, "at the start"),
                    .said = mib_after(run.text, "arena"),
                    .text = run.text};
    const std::string line = run.text.substr(run.text.find("outside it"));
    const std::regex owner("[a-z0-9] ([0-9.]+) MiB");
    for (std::sregex_iterator it(line.begin(), line.end(), owner), end; it != end; ++it) {
      account.said += std::stod((*it)[1]);
    }
    return account;
  }
};

TEST_F(Memory, OfTrainIsExplainedByArenaAndList) {
  const std::string steps = "mnist_cnn --data digits --batch 128 --max-steps 10";
  for (const char* more : {"", "", " --val digits"}) {  // compiles first, then has the cache
    const Account account = account_of(steps + more);
    // Products of oneDNN 2.6 without AVX-512 pack their operands in memory that they allocate.
    EXPECT_NEAR(account.said, account.grown, 0.15 * account.grown) << account.text;
  }
}

TEST_F(Memory, OfATableIsExplainedByTheData) {
  const std::string path = dir_.file("large.csv");
  std::ofstream csv(path);
  csv << "a,b,y\n";
  for (int row = 0; row < 900'000; ++row) csv << "0.12345678,0.87654321,0.5\n";
  csv.close();
  const std::string steps = "linear_regression --batch 100000 --epochs 3 --data 'csv:" + path;
  account_of(steps + "?label=y'");  // compiles first, then has the cache
  const Account account = account_of(steps + "?label=y'");
  EXPECT_GT(mib_after(account.text, " data"), 8);
  EXPECT_NEAR(account.said, account.grown, 0.1 * account.grown) << account.text;
}

/// A checkpoint is read in pieces, and evaluation holds parameters without moments.
TEST_F(Memory, ResumingTakesNoMoreThanTraining) {
  write_npy(dir_.file("x.npy"), Tensor(f32, {4, 4096}));
  std::ofstream(dir_.file("wide.fir")) << R"(program @wide {
  %x = data "x" : f32[?, 4096]
  %w = param "w" {init = "normal"} : f32[4096, 4096]
  %y = matmul(%x, %w) : f32[?, 4096]
  %s = square(%y) : f32[?, 4096]
  %loss = mean(%s) : f32[]
  output "loss" = %loss
  train(%loss) {optimizer = "adam", lr = 0.001}
})";
  const std::string from = " " + dir_.file("wide.fir") + " --data npy:x=" + dir_.file("x.npy");
  const std::string steps =
      from + " --batch 4 --checkpoint-dir " + dir_.file("c") + " --max-steps ";
  const Trained first = train(steps + "1"), resumed = train(steps + "2 --epochs 2 --resume");
  ASSERT_TRUE(first.finished && resumed.finished) << first.text << resumed.text;
  constexpr double kParameter = 64;  // MiB; its moments take as much each
  EXPECT_GT(first.peak_mib, 3 * kParameter);
  EXPECT_LT(resumed.peak_mib, first.peak_mib + kParameter) << resumed.text;
  EXPECT_NE(resumed.text.find("saving and loading take 1.00 MiB"), std::string::npos);
}

TEST_F(Memory, OfAllDataAsOneBatchIsAsSaid) {
  const Account account = account_of("linear_regression --data synthetic-linear --max-steps 10");
  EXPECT_NEAR(account.said, account.grown, 0.1 * account.grown) << account.text;
}

}  // namespace
}  // namespace fluid::memory_test
