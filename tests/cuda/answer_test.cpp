#include "executor/cuda/answer.h"

#include <gtest/gtest.h>

#include "executor/cuda/objects.h"

namespace fluid::cuda {
namespace {

TEST(Answer, TellsWhoMustAct) {
  EXPECT_EQ(answer(cudaSuccess, "testing"), fluid_gpu_ok);
  EXPECT_EQ(answer(cudaErrorNotReady, "testing"), fluid_gpu_not_ready);
  EXPECT_EQ(answer(cudaErrorMemoryAllocation, "testing"), fluid_gpu_out_of_memory);
  EXPECT_EQ(answer(cudaErrorInsufficientDriver, "testing"), fluid_gpu_unusable);
  EXPECT_EQ(answer(cudaErrorStreamCaptureUnjoined, "testing"), fluid_gpu_misused);
  EXPECT_EQ(answer(cudaErrorIllegalAddress, "copying"), fluid_gpu_failed);
  EXPECT_STREQ(last_error(),
               "copying: cudaErrorIllegalAddress, an illegal memory access was encountered");
}

TEST(Answer, HasNoTextForWorkThatIsNotDone) {
  refuse(fluid_gpu_failed, "before");
  EXPECT_EQ(answer(cudaErrorNotReady, "querying an event"), fluid_gpu_not_ready);
  EXPECT_STREQ(last_error(), "before");
}

int given_back = 0;

cudaError_t give_back_well(void*) {
  ++given_back;
  return cudaSuccess;
}
cudaError_t give_back_badly(void*) {
  ++given_back;
  return cudaErrorIllegalAddress;
}

TEST(GpuResources, AreGivenBackOnce) {
  int a = 0, b = 0, c = 0;
  GpuResources belongings;
  belongings.add(&a, give_back_well);
  belongings.add(&b, give_back_badly);
  belongings.add(&c, give_back_well);
  given_back = 0;
  EXPECT_EQ(belongings.give_back(&a), cudaSuccess);
  EXPECT_EQ(belongings.give_back(&a), cudaErrorInvalidValue);
  EXPECT_EQ(given_back, 1);
  EXPECT_EQ(belongings.release_all(), cudaErrorIllegalAddress);
  EXPECT_EQ(given_back, 3);
  EXPECT_EQ(belongings.release_all(), cudaSuccess);
  EXPECT_EQ(given_back, 3);
}

/// As a communicator waits for the graphs that hold its work.
TEST(GpuResources, AreGivenBackBackwards) {
  int numbers[3] = {};
  GpuResources belongings;
  given_back = 0;
  for (int& n : numbers) {
    belongings.add(&n, [](void* what) {
      *static_cast<int*>(what) = ++given_back;
      return cudaSuccess;
    });
  }
  EXPECT_EQ(belongings.release_all(), cudaSuccess);
  EXPECT_EQ(std::vector(std::begin(numbers), std::end(numbers)), (std::vector{3, 2, 1}));
}

}  // namespace
}  // namespace fluid::cuda
