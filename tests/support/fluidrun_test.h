#pragma once

// Shared code of the tests of fluidrun: its path, a small program, and checks of its error
// messages.

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>

#include "tests/support/facts.h"
#include "tests/support/temp_dir.h"

namespace fluid {

inline const std::string kFluidrun = std::string(FLUID_BINARY_DIR) + "/fluidrun";

/// A directory with `line.fir`, which fits y = x w by SGD from w = 0 and outputs "loss" and "line",
/// and with a kernel cache of its own.
class FluidrunTest : public ::testing::Test {
 protected:
  struct Result {
    int code = -1;       ///< -1 when a signal ended it
    std::string output;  ///< stdout and stderr
  };

  void SetUp() override {
    if (!std::filesystem::exists(kFluidrun)) GTEST_SKIP() << "fluidrun is not built";
    setenv("FLUID_CACHE", dir_.file("cache").c_str(), 1);
    setenv("FLUID_MACHINE", "", 1);  // assumes the rates of the CPU, instead of a measurement
    std::ofstream(dir_.file("line.fir")) << kLine;
  }

  /// Runs a shell command in the directory.
  Result run_command(const std::string& command) const {
    FILE* pipe = popen(("cd " + dir_.path() + " && { " + command + "; } 2>&1").c_str(), "r");
    Result result;
    std::array<char, 4096> chunk;
    while (const size_t n = fread(chunk.data(), 1, chunk.size(), pipe)) {
      result.output.append(chunk.data(), n);
    }
    const int status = pclose(pipe);
    result.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return result;
  }
  Result run(const std::string& arguments) const {
    return run_command(before_ + kFluidrun + " " + arguments);
  }

  /// Expects exit code 1, one line that states the facts of `message`, and no file that was not
  /// there before.
  void expect_error(const std::string& arguments, const std::string& message) const {
    const std::string output = expect_late_error(arguments, message);
    EXPECT_EQ(std::ranges::count(output, '\n'), 1) << arguments << ": " << output;
  }
  /// Like expect_error(), for an error that a step reports after other lines. Returns all lines.
  std::string expect_late_error(const std::string& arguments, const std::string& message) const {
    const std::set<std::string> before = files();
    const Result result = run(arguments);
    EXPECT_EQ(result.code, 1) << arguments << ": " << result.output;
    const size_t last = result.output.rfind("fluidrun: ");
    EXPECT_EQ(last, result.output.find("fluidrun: ")) << arguments << ": " << result.output;
    const std::string line = last == std::string::npos ? "" : result.output.substr(last);
    EXPECT_TRUE(states(line, message)) << arguments << ": " << result.output;
    EXPECT_EQ(line.find('\n') + 1, line.size()) << arguments << ": " << result.output;
    EXPECT_EQ(files(), before) << arguments;
    return result.output;
  }

  /// Waits up to a minute.
  template <class F>
  static bool until(F holds) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!holds()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return true;
  }
  /// All files, but of the kernel cache only what is no kernel.
  std::set<std::string> files() const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(dir_.path())) {
      const std::string path = entry.path().string();
      const bool kernel = path.find("/cache/") != std::string::npos &&
                          (path.ends_with(".o") || path.ends_with("/kernels.evicted"));
      if (!kernel && !path.ends_with("/cache")) names.insert(path);
    }
    return names;
  }

  static constexpr const char* kLine = R"(program @line {
  %x = data "x" : f32[?, 2]
  %y = data "y" : f32[?, 1]
  %w = param "w" {init = "constant", value = 0.0} : f32[2, 1]
  %p = matmul(%x, %w) : f32[?, 1]
  %e = sub(%p, %y) : f32[?, 1]
  %s = square(%e) : f32[?, 1]
  %loss = mean(%s) : f32[]
  train(%loss) {optimizer = "sgd", lr = 0.01}
  output "loss" = %loss
  output "line" = %p
}
)";

  TempDir dir_;
  std::string before_;  ///< shell commands before fluidrun
};

}  // namespace fluid
