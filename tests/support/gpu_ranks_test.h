#pragma once

#include <gtest/gtest.h>

#include <cstdlib>

namespace fluid::testing {

/// Ranks whose GPUs are those of the library that lets the host stand in for two.
class GpuRanksTest : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("FLUID_GPU_LIBRARY", FLUID_BINARY_DIR "/gpu_libraries/stand_in.so", 1);
    setenv("FLUID_STAND_IN_DEVICES", "2", 1);
  }
  void TearDown() override {
    unsetenv("FLUID_GPU_LIBRARY");
    unsetenv("FLUID_STAND_IN_DEVICES");
  }
};

}  // namespace fluid::testing
