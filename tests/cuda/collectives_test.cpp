#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "executor/cuda/functions.h"
#include "executor/cuda/result.h"

namespace fluid::cuda::collectives_test {
namespace {

/// With or without GPUs: NCCL arranges it, or says why it does not.
TEST(Collectives, NcclIsConfiguredBeforeRanksMeet) {
  FluidGpuUniqueId meeting = {};
  const FluidGpuResult result = cuda::unique_id(&meeting);
  if (result != fluid_gpu_ok) {
    EXPECT_EQ(std::string(last_error()).find("creating a communicator id by NCCL: "), 0U)
        << last_error();
  }
  EXPECT_STREQ(std::getenv("NCCL_ALGO"), "Ring");
  EXPECT_STREQ(std::getenv("NCCL_GRAPH_REGISTER"), "0");
}

/// In a process where NCCL has not started.
TEST(CollectivesDeathTest, WhatTheUserHasSetStays) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto configured = [] {
    setenv("NCCL_ALGO", "Tree", 1);
    setenv("NCCL_GRAPH_REGISTER", "1", 1);
    FluidGpuUniqueId meeting = {};
    cuda::unique_id(&meeting);
    std::fprintf(stderr, "%s %s", std::getenv("NCCL_ALGO"), std::getenv("NCCL_GRAPH_REGISTER"));
    std::_Exit(0);
  };
  EXPECT_EXIT(configured(), ::testing::ExitedWithCode(0), "Tree 1");
}

}  // namespace
}  // namespace fluid::cuda::collectives_test
