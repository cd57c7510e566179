// Products of matrices of many sizes by a GPU's library, by every algorithm that the executor
// would try.

#include "executor/gpu_libraries/gpu_trials.h"
#include "tests/gpu/library_test.h"
#include "tests/support/product_data.h"

namespace fluid::products_test {
namespace {

using fluid::testing::product_of;
using fluid::testing::ProductData;
using fluid::testing::ProductMemory;
using fluid::testing::ProductSize;

constexpr int64_t kWorkspace = int64_t{64} << 20;
constexpr FluidGpuDtype kNumbers[] = {fluid_gpu_f64, fluid_gpu_f32, fluid_gpu_f16, fluid_gpu_bf16};

class GpuLibraryProducts : public GpuLibraryTest {
 protected:
  /// By every algorithm that would be tried, twice.
  void expect_right(const FluidGpuMatmul& p) {
    const ProductData data(p);
    const ProductMemory memory(*gpu_, stream_, p, data, kWorkspace);
    const std::vector<double> expected = data.expected(p);
    const std::vector<FluidGpuAlgorithm> choices = gpu_->algorithms(p, kWorkspace, kMaxAlgorithms);
    EXPECT_FALSE(choices.empty());
    for (const FluidGpuAlgorithm& choice : choices) {
      EXPECT_LE(choice.workspace, kWorkspace);
      const GpuPlan gpu_plan = gpu_->create_plan(p, choice);
      ASSERT_TRUE(gpu_plan);
      for (int time = 0; time < 2; ++time) {
        gpu_->fill(stream_, memory.factors().result, 0xff, p.count * p.result_matrix_stride);
        gpu_->execute_plan(stream_, gpu_plan, memory.factors());
        EXPECT_EQ(memory.result(), expected);
      }
    }
  }
};

TEST_F(GpuLibraryProducts, EveryNumberAndTranspositionIsMultiplied) {
  std::vector<ProductSize> sizes = {{5, 7, 9}, {64, 48, 96}, {1, 130, 33}, {129, 1, 65}};
  sizes.resize(scaled<size_t>(sizes.size(), 1));
  for (const FluidGpuDtype number : kNumbers) {
    for (const auto& size : sizes) {
      for (const int which : {0, 1, 2, 3}) {
        for (const int64_t count : {1, 3}) {
          SCOPED_TRACE(::testing::Message() << number << ' ' << size.m << ' ' << which << count);
          expect_right(product_of(number, which % 2 != 0, which / 2 != 0, count, size));
        }
      }
    }
  }
}

TEST_F(GpuLibraryProducts, EveryEpilogueIsApplied) {
  for (const FluidGpuDtype number : kNumbers) {
    FluidGpuMatmul p = product_of(number, true, false, 2, {33, 20, 40});
    p.has_addend = 1;
    expect_right(p);
    if (number == fluid_gpu_f64) continue;
    p = product_of(number, false, true, 1, {33, 20, 40});
    for (const int which : {1, 2, 3}) {
      SCOPED_TRACE(::testing::Message() << number << ' ' << which);
      p.bias = which % 2;
      p.relu = which / 2;
      expect_right(p);
    }
    p.result = fluid_gpu_f32;
    expect_right(p);
  }
}

}  // namespace
}  // namespace fluid::products_test
