// Convolutions of many sizes by a GPU's library, by every algorithm that it offers.

#include "tests/gpu/library_test.h"
#include "tests/support/gpu_convolution_cases.h"

namespace fluid::convolutions_test {
namespace {

using fluid::testing::convolution_of;
using fluid::testing::ConvolutionData;
using fluid::testing::ConvolutionMemory;
using fluid::testing::ConvolutionSize;
using fluid::testing::expect_convolved;

constexpr int64_t kWorkspace = testing::kManyWorkspace;
constexpr int kMostChoices = 32;

class GpuLibraryConvolutions : public GpuLibraryTest {
 protected:
  /// One at least: without any nothing would be tested.
  std::vector<FluidGpuAlgorithm> choices(const FluidGpuConvolution& c) {
    const std::vector<FluidGpuAlgorithm> found = gpu_->algorithms(c, kWorkspace, kMostChoices);
    EXPECT_FALSE(found.empty());
    return found;
  }

  /// Checks every algorithm twice, with bitwise equal results.
  void expect_right(const FluidGpuConvolution& c) {
    const ConvolutionData data(c);
    const ConvolutionMemory memory(*gpu_, stream_, c, data, kWorkspace);
    const std::vector<double> expected = data.expected(c);
    for (const FluidGpuAlgorithm& choice : choices(c)) {
      EXPECT_LE(choice.workspace, kWorkspace);
      const GpuPlan gpu_plan = gpu_->create_plan(c, choice);
      ASSERT_TRUE(gpu_plan);
      std::vector<double> before;
      for (int time = 0; time < 2; ++time) {
        gpu_->fill(stream_, memory.factors().result, 0xff, data.addend.bytes());
        gpu_->execute_plan(stream_, gpu_plan, memory.factors());
        const std::vector<double> found = memory.result();
        SCOPED_TRACE(static_cast<uint32_t>(choice.opaque[0]));  // cuDNN's number of the engine
        expect_convolved(found, expected, c.dtype);
        EXPECT_EQ(found, time == 0 ? found : before);
        before = found;
      }
    }
  }
};

TEST_F(GpuLibraryConvolutions, EveryDirectionNumberAndLayoutIsComputed) {
  std::vector<ConvolutionSize> sizes = testing::many_sizes();
  sizes.resize(scaled<size_t>(sizes.size(), 1));
  for (const FluidGpuConvolution& c : testing::convolutions_of(sizes)) {
    SCOPED_TRACE(task_text(c));
    expect_right(c);
  }
}

TEST_F(GpuLibraryConvolutions, WhatFollowsIsApplied) {
  for (const FluidGpuConvolution& c : testing::followed_convolutions(testing::kManyFollowed)) {
    SCOPED_TRACE(task_text(c));
    expect_right(c);
  }
}

TEST_F(GpuLibraryConvolutions, OnlyTf32RoundsFactors) {
  FluidGpuConvolution c = convolution_of(fluid_gpu_forward, fluid_gpu_f32, false,
                                         {.channels = 64, .filters = 64, .taps = 1, .padding = 0});
  ConvolutionData data(c);
  for (float& x : data.a.as<float>()) x = 1.0001f;
  for (float& x : data.b.as<float>()) x = 1;
  const ConvolutionMemory memory(*gpu_, stream_, c, data, kWorkspace);
  const double exact = 64 * static_cast<double>(1.0001f);
  for (const bool tf32 : {false, true}) {
    c.tf32 = tf32;
    for (const FluidGpuAlgorithm& choice : choices(c)) {
      gpu_->execute_plan(stream_, gpu_->create_plan(c, choice), memory.factors());
      const double found = memory.result().front();
      EXPECT_NEAR(found, exact, tf32 ? 1e-2 : 1e-3);
      EXPECT_TRUE(found == 64 || !tf32 || !is_stand_in()) << found << ": a library may round";
    }
  }
}

TEST_F(GpuLibraryConvolutions, AGraphAddsInPlaceByEveryAlgorithm) {
  FluidGpuConvolution c = convolution_of(fluid_gpu_filter_gradient, fluid_gpu_f32, false,
                                         {.channels = 8, .filters = 16});
  c.has_addend = 1;
  const ConvolutionData data(c);
  for (const FluidGpuAlgorithm& choice : choices(c)) {
    const ConvolutionMemory memory(*gpu_, stream_, c, data, kWorkspace);
    FluidGpuOperands f = memory.factors();
    const GpuPlan gpu_plan = gpu_->create_plan(c, choice);
    gpu_->execute_plan(stream_, gpu_plan, f);
    gpu_->synchronize(stream_);
    f.result = const_cast<void*>(f.addend);
    gpu_->begin_capture(stream_);
    gpu_->execute_plan(stream_, gpu_plan, f);
    const GpuGraph graph = gpu_->end_capture(stream_);
    std::vector<double> expected = data.expected(c);
    const std::vector<double> before = memory.read(f.addend);
    gpu_->launch(graph, stream_);
    expect_convolved(memory.read(f.result), expected, c.dtype);
    for (size_t i = 0; i < expected.size(); ++i) expected[i] += expected[i] - before[i];
    gpu_->launch(graph, stream_);
    expect_convolved(memory.read(f.result), expected, c.dtype);
  }
}

}  // namespace
}  // namespace fluid::convolutions_test
