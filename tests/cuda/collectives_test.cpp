#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "executor/cuda/answer.h"
#include "executor/cuda/functions.h"

namespace fluid::cuda {
namespace {

/// With or without GPUs: NCCL arranges it, or says why it does not.
TEST(Collectives, AreAskedForRingsBeforeRanksMeet) {
  FluidGpuMeeting meeting = {};
  const FluidGpuResult result = cuda::meeting(&meeting);
  if (result != fluid_gpu_ok) {
    EXPECT_EQ(std::string(last_error()).find("arranging a meeting by NCCL: "), 0U) << last_error();
  }
  EXPECT_STREQ(std::getenv("NCCL_ALGO"), "Ring");
}

}  // namespace
}  // namespace fluid::cuda
