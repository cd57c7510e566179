#include <gtest/gtest.h>

#include <array>

#include "executor/cuda/functions.h"
#include "executor/cuda/objects.h"

namespace fluid::cuda::matmuls_test {
namespace {

/// Without a driver nothing is computed, and nothing is left behind.
TEST(Products, SayThatThereIsNoGpu) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) == cudaSuccess) GTEST_SKIP() << "this machine has a GPU";
  FluidGpu gpu = {.device = 0, .architecture = 90};
  FluidGpuStream stream = {.gpu = &gpu};
  const FluidGpuMatmul product = {.operands = fluid_gpu_f32,
                                  .result = fluid_gpu_f32,
                                  .m = 2,
                                  .n = 2,
                                  .k = 2,
                                  .a_row_stride = 2,
                                  .b_row_stride = 2,
                                  .result_row_stride = 2,
                                  .count = 1};
  std::array<FluidGpuAlgorithm, 4> choices = {};
  int32_t count = 4;
  EXPECT_EQ(matmul_algorithms(&gpu, &product, 0, choices.data(), &count), fluid_gpu_unusable);
  EXPECT_EQ(count, 0);
  EXPECT_TRUE(std::string(last_error()).starts_with("choosing a matmul algorithm: cudaError"))
      << last_error();
  FluidGpuPlan* gpu_plan = nullptr;
  EXPECT_EQ(matmul_plan_create(&gpu, &product, choices.data(), &gpu_plan), fluid_gpu_unusable);
  EXPECT_EQ(gpu_plan, nullptr);
  EXPECT_EQ(plan_execute(&stream, nullptr, nullptr), fluid_gpu_unusable);
  EXPECT_EQ(gpu.blas, nullptr);
}

}  // namespace
}  // namespace fluid::cuda::matmuls_test
