// Products of matrices by a GPU's library, whichever it is: what the executor counts on.

#include <cmath>

#include "tests/gpu/gpu_test.h"
#include "tests/support/product_data.h"

namespace fluid {
namespace {

using fluid::testing::product_of;
using fluid::testing::ProductData;
using fluid::testing::ProductMemory;
using fluid::testing::ProductSize;

constexpr int64_t kWorkspace = int64_t{64} << 20;
constexpr FluidGpuNumber kNumbers[] = {fluid_gpu_f64, fluid_gpu_f32, fluid_gpu_f16, fluid_gpu_bf16};

class GpuLibraryProducts : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    gpu_.emplace(usable_gpu(gpu_backend(), 0), 0);
    stream_ = gpu_->stream();
  }
  void TearDown() override {
    stream_ = {};
    gpu_.reset();
  }

  /// By every algorithm that there is, twice.
  void expect_right(const FluidGpuProduct& p) {
    const ProductData data(p);
    const ProductMemory memory(*gpu_, stream_, p, data, kWorkspace);
    const std::vector<double> expected = data.expected(p);
    const std::vector<FluidGpuChoice> choices = gpu_->choices(p, kWorkspace, 8);
    EXPECT_FALSE(choices.empty());
    for (const FluidGpuChoice& choice : choices) {
      EXPECT_LE(choice.workspace, kWorkspace);
      const GpuMultiplier multiplier = gpu_->multiplier(p, choice);
      ASSERT_TRUE(multiplier);
      for (int time = 0; time < 2; ++time) {
        gpu_->fill(stream_, memory.factors().result, 0xff, p.count * p.result_matrix);
        gpu_->multiply(stream_, multiplier, memory.factors());
        EXPECT_EQ(memory.result(), expected);
      }
    }
  }

  std::optional<Gpu> gpu_;
  GpuStream stream_;
};

TEST_F(GpuLibraryProducts, EveryNumberAndTranspositionIsMultiplied) {
  std::vector<ProductSize> sizes = {{5, 7, 9}, {64, 48, 96}, {1, 130, 33}, {129, 1, 65}};
  sizes.resize(scaled<size_t>(sizes.size(), 1));
  for (const FluidGpuNumber number : kNumbers) {
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
  for (const FluidGpuNumber number : kNumbers) {
    FluidGpuProduct p = product_of(number, true, false, 2, {33, 20, 40});
    p.adds = 1;
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

TEST_F(GpuLibraryProducts, OnlyTf32RoundsOperands) {
  FluidGpuProduct p = product_of(fluid_gpu_f32, false, false, 1, {64, 64, 64});
  ProductData data(p);
  for (float& x : data.a.as<float>()) x = 1.0001f;
  for (float& x : data.b.as<float>()) x = 1;
  const ProductMemory memory(*gpu_, stream_, p, data, kWorkspace);
  const double exact = 64 * static_cast<double>(1.0001f);
  for (const bool tf32 : {false, true}) {
    p.tf32 = tf32;
    for (const FluidGpuChoice& choice : gpu_->choices(p, kWorkspace, 8)) {
      const GpuMultiplier multiplier = gpu_->multiplier(p, choice);
      gpu_->multiply(stream_, multiplier, memory.factors());
      EXPECT_NEAR(memory.result().front(), exact, tf32 ? 1e-2 : 1e-3);
    }
  }
}

TEST_F(GpuLibraryProducts, AGraphMultipliesInPlace) {
  FluidGpuProduct p = product_of(fluid_gpu_f32, true, false, 1, {70, 50, 90});
  p.adds = 1;
  const ProductData data(p);
  const ProductMemory memory(*gpu_, stream_, p, data, kWorkspace);
  FluidGpuFactors f = memory.factors();
  const GpuMultiplier multiplier = gpu_->multiplier(p, gpu_->choices(p, kWorkspace, 1).at(0));
  gpu_->multiply(stream_, multiplier, f);
  gpu_->synchronize(stream_);
  f.result = const_cast<void*>(f.addend);
  gpu_->begin_capture(stream_);
  gpu_->multiply(stream_, multiplier, f);
  const GpuGraph graph = gpu_->end_capture(stream_);
  std::vector<double> expected = data.expected(p);
  const std::vector<double> before = memory.read(f.addend);
  gpu_->launch(graph, stream_);
  EXPECT_EQ(memory.read(f.result), expected);
  for (size_t i = 0; i < expected.size(); ++i) expected[i] += expected[i] - before[i];
  gpu_->launch(graph, stream_);
  EXPECT_EQ(memory.read(f.result), expected);
}

}  // namespace
}  // namespace fluid
