#include "executor/cuda/result.h"

#include <gtest/gtest.h>

#include "executor/cuda/objects.h"

namespace fluid::cuda::result_test {
namespace {

TEST(Answer, TellsWhoMustAct) {
  EXPECT_EQ(to_result(cudaSuccess, "testing"), fluid_gpu_ok);
  EXPECT_EQ(to_result(cudaErrorNotReady, "testing"), fluid_gpu_not_ready);
  EXPECT_EQ(to_result(cudaErrorMemoryAllocation, "testing"), fluid_gpu_out_of_memory);
  EXPECT_EQ(to_result(cudaErrorInsufficientDriver, "testing"), fluid_gpu_unusable);
  EXPECT_EQ(to_result(cudaErrorStreamCaptureUnjoined, "testing"), fluid_gpu_invalid_usage);
  EXPECT_EQ(to_result(cudaErrorIllegalAddress, "copying"), fluid_gpu_failed);
  EXPECT_STREQ(last_error(),
               "copying: cudaErrorIllegalAddress, an illegal memory access was encountered");
}

TEST(Answer, HasNoTextForWorkThatIsNotDone) {
  set_error(fluid_gpu_failed, "before");
  EXPECT_EQ(to_result(cudaErrorNotReady, "querying an event"), fluid_gpu_not_ready);
  EXPECT_STREQ(last_error(), "before");
}

int given_back = 0;

cudaError_t release_succeeding(void*) {
  ++given_back;
  return cudaSuccess;
}
cudaError_t release_failing(void*) {
  ++given_back;
  return cudaErrorIllegalAddress;
}

TEST(GpuResources, AreGivenBackOnce) {
  int a = 0, b = 0, c = 0;
  GpuResources gpu_resources;
  gpu_resources.add(&a, release_succeeding);
  gpu_resources.add(&b, release_failing);
  gpu_resources.add(&c, release_succeeding);
  given_back = 0;
  EXPECT_EQ(gpu_resources.release_resource(&a), cudaSuccess);
  EXPECT_EQ(gpu_resources.release_resource(&a), cudaErrorInvalidValue);
  EXPECT_EQ(given_back, 1);
  EXPECT_EQ(gpu_resources.release_all(), cudaErrorIllegalAddress);
  EXPECT_EQ(given_back, 3);
  EXPECT_EQ(gpu_resources.release_all(), cudaSuccess);
  EXPECT_EQ(given_back, 3);
}

/// As a communicator waits for the graphs that hold its work.
TEST(GpuResources, AreGivenBackBackwards) {
  int numbers[3] = {};
  GpuResources gpu_resources;
  given_back = 0;
  for (int& n : numbers) {
    gpu_resources.add(&n, [](void* what) {
      *static_cast<int*>(what) = ++given_back;
      return cudaSuccess;
    });
  }
  EXPECT_EQ(gpu_resources.release_all(), cudaSuccess);
  EXPECT_EQ(std::vector(std::begin(numbers), std::end(numbers)), (std::vector{3, 2, 1}));
}

}  // namespace
}  // namespace fluid::cuda::result_test
