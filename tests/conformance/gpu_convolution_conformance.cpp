// Convolutions by the library of a GPU.

#include "tests/conformance/gpu_conformance.h"
#include "tests/support/errors.h"
#include "tests/support/gpu_convolution_cases.h"

namespace fluid::testing {
void GpuConvolutionConformance::expect_right(const FluidGpuConvolution& c) {
  const ConvolutionData data(c);
  const ConvolutionMemory memory = memory_of(c, data);
  const std::vector<FluidGpuAlgorithm> choices = gpu_->algorithms(c, kWorkspace, 8);
  ASSERT_FALSE(choices.empty());
  for (const FluidGpuAlgorithm& choice : choices) {
    EXPECT_LE(choice.workspace, kWorkspace);
    const GpuPlan gpu_plan = gpu_->create_plan(c, choice);
    ASSERT_TRUE(gpu_plan);
    gpu_->fill(a_, memory.factors().result, 0xff, data.addend.bytes());
    gpu_->execute_plan(a_, gpu_plan, memory.factors());
    expect_convolved(memory.result(), data.expected(c), c.dtype);
  }
}

TEST_P(GpuConvolutionConformance, EveryDirectionNumberAndLayoutIsComputed) {
  for (const FluidGpuConvolution& c : convolutions_of(conformance_sizes())) {
    SCOPED_TRACE(task_text(c));
    expect_right(c);
  }
}

TEST_P(GpuConvolutionConformance, WhatFollowsIsApplied) {
  for (const FluidGpuConvolution& c : followed_convolutions(kConformanceFollowed)) {
    SCOPED_TRACE(task_text(c));
    expect_right(c);
  }
}

TEST_P(GpuConvolutionConformance, GraphsAddToWhatIsThere) {
  FluidGpuConvolution c = convolution_of(fluid_gpu_filter_gradient, fluid_gpu_f32);
  c.has_addend = 1;
  const ConvolutionData data(c);
  const ConvolutionMemory memory = memory_of(c, data);
  FluidGpuOperands f = memory.factors();
  const GpuPlan gpu_plan = gpu_->create_plan(c, gpu_->algorithms(c, kWorkspace, 1).at(0));
  gpu_->execute_plan(a_, gpu_plan, f);
  gpu_->synchronize(a_);
  f.result = const_cast<void*>(f.addend);
  gpu_->begin_capture(a_);
  gpu_->execute_plan(a_, gpu_plan, f);
  const GpuGraph graph = gpu_->end_capture(a_);
  gpu_->launch(graph, a_);
  expect_convolved(memory.read(f.result), data.expected(c), c.dtype);
}

TEST_P(GpuConvolutionConformance, ConvolutionsThatThereCannotBeAreMisused) {
  const FluidGpuConvolution c = convolution_of(fluid_gpu_forward, fluid_gpu_f32);
  FluidGpuAlgorithm choice = first_choice(c);
  const auto expect_misused = [&](auto change) {
    FluidGpuConvolution wrong = c;
    change(wrong);
    EXPECT_THROW(gpu_->algorithms(wrong, kWorkspace, 8), DeviceError);
    EXPECT_FALSE(gpu_->create_plan(wrong, choice));
  };
  using C = FluidGpuConvolution;
  expect_misused([](C& w) { w.dtype = fluid_gpu_f64; });
  expect_misused([](C& w) { w.groups = 4; });
  expect_misused([](C& w) { w.images = 0; });
  expect_misused([](C& w) { w.map_width += 1; });
  expect_misused([](C& w) { w.relu = 1; });
  expect_misused([](C& w) { w.bias = w.has_addend = 1; });
  expect_misused([](C& w) {
    w.direction = fluid_gpu_data_gradient;
    w.bias = 1;
  });
  choice.opaque[0] ^= 0x4000;
  EXPECT_FALSE(gpu_->create_plan(c, choice)) << "of another library";
}

TEST_P(GpuConvolutionConformance, PreparingDuringACaptureLosesIt) {
  const FluidGpuConvolution c = convolution_of(fluid_gpu_forward, fluid_gpu_f32);
  const FluidGpuAlgorithm choice = first_choice(c);
  gpu_->begin_capture(a_);
  EXPECT_THROW(gpu_->algorithms(c, kWorkspace, 8), DeviceError);
  EXPECT_THROW(gpu_->end_capture(a_), DeviceError);
  gpu_->begin_capture(a_);
  EXPECT_FALSE(gpu_->create_plan(c, choice));
  EXPECT_THROW(gpu_->end_capture(a_), DeviceError);
}

TEST_P(GpuConvolutionConformance, TheFirstTimeIsNotDuringACapture) {
  const FluidGpuConvolution c = convolution_of(fluid_gpu_forward, fluid_gpu_f32);
  const ConvolutionData data(c);
  const ConvolutionMemory memory = memory_of(c, data);
  const GpuPlan gpu_plan = gpu_->create_plan(c, first_choice(c));
  gpu_->begin_capture(a_);
  EXPECT_THROW(gpu_->execute_plan(a_, gpu_plan, memory.factors()), DeviceError);
  EXPECT_THROW(gpu_->end_capture(a_), DeviceError);
  gpu_->execute_plan(a_, gpu_plan, memory.factors());
  expect_convolved(memory.result(), data.expected(c), c.dtype);
}

}  // namespace fluid::testing
