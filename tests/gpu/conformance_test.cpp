// The first GPU that the executor finds does what the executor expects of one.

#include <cstdlib>

#include "tests/conformance/gpu_conformance.h"
#include "tests/gpu/gpu_test.h"

namespace fluid::testing::conformance_test {
namespace {

const FluidGpuTable* found_gpu() {
  if (gpu_backend().devices > 0) return &require_supported_gpu(gpu_backend(), 0);
  EXPECT_EQ(std::getenv("FLUID_GPU_LIBRARY"), nullptr) << gpu_backend().unavailable_reason;
  return nullptr;
}

const GpuUnderTest kFound{.name = "found", .prepare = found_gpu};
INSTANTIATE_TEST_SUITE_P(Gpu, GpuConformance, ::testing::Values(kFound), gpu_test_name);
INSTANTIATE_TEST_SUITE_P(Gpu, GpuProductConformance, ::testing::Values(kFound), gpu_test_name);
INSTANTIATE_TEST_SUITE_P(Gpu, GpuConvolutionConformance, ::testing::Values(kFound), gpu_test_name);

}  // namespace
}  // namespace fluid::testing::conformance_test
