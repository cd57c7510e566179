#pragma once

// What tests of the fluidrun program share: where it is, and a small program to give it.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/temp_dir.h"

namespace fluid {

inline const std::string kFluidrun = std::string(FLUID_BINARY_DIR) + "/fluidrun";

/// A directory with `line.fir`, which fits y = x w by SGD from w = 0 and outputs "loss" and "line",
/// and with a kernel cache of its own.
class FluidrunTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kFluidrun)) GTEST_SKIP() << "fluidrun is not built";
    setenv("FLUID_CACHE", dir_.file("cache").c_str(), 1);
    std::ofstream(dir_.file("line.fir")) << R"(program @line {
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
  }

  TempDir dir_;
};

}  // namespace fluid
