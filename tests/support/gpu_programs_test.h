#pragma once

#include <string>

#include "tests/support/parallel_test.h"

namespace fluid {

/// fluidrun, and for a GPU the library that lets the host stand in for one.
class GpuProgramsTest : public ParallelTest {
 protected:
  void SetUp() override {
    ParallelTest::SetUp();
    before_ = "export FLUID_GPU_LIBRARY=" + std::string(FLUID_BINARY_DIR) +
              "/gpu_libraries/stand_in.so; ";
  }

  std::string succeed(const std::string& command) const {
    const Result result = run(command);
    EXPECT_EQ(result.code, 0) << command << ": " << result.output;
    return result.output;
  }
};

}  // namespace fluid
