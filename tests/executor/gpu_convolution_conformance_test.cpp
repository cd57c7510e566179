// What the executor expects of a GPU's convolutions, checked on the host that stands in for one.

#include <gtest/gtest.h>

#include "tests/support/convolution_data.h"
#include "tests/support/errors.h"
#include "tests/support/host_gpu.h"

namespace fluid {
namespace {

using fluid::testing::convolution_of;
using fluid::testing::ConvolutionData;
using fluid::testing::ConvolutionMemory;
using fluid::testing::ConvolutionSize;
using fluid::testing::host_gpu_objects;
using fluid::testing::host_gpu_table;
using fluid::testing::HostPace;

constexpr int64_t kWorkspace = 1 << 20;
constexpr FluidGpuDirection kDirections[] = {fluid_gpu_forward, fluid_gpu_data_gradient,
                                             fluid_gpu_filter_gradient};
constexpr FluidGpuNumber kNumbers[] = {fluid_gpu_f32, fluid_gpu_f16, fluid_gpu_bf16};

class GpuConvolutionConformance : public ::testing::TestWithParam<HostPace> {
 protected:
  void SetUp() override {
    fluid::testing::reset_host_gpu({.pace = GetParam()});
    gpu_.emplace(host_gpu_table(), 0);
    stream_ = gpu_->stream();
  }
  void TearDown() override {
    stream_ = {};
    gpu_.reset();
    EXPECT_EQ(host_gpu_objects(), 0);
  }

  void expect_right(const FluidGpuConvolution& c) {
    const ConvolutionData data(c);
    const ConvolutionMemory memory(*gpu_, stream_, c, data, kWorkspace);
    const std::vector<FluidGpuChoice> choices = gpu_->choices(c, kWorkspace, 8);
    ASSERT_FALSE(choices.empty());
    for (const FluidGpuChoice& choice : choices) {
      const GpuMultiplier multiplier = gpu_->multiplier(c, choice);
      ASSERT_TRUE(multiplier);
      gpu_->fill(stream_, memory.factors().result, 0xff, data.addend.bytes());
      gpu_->multiply(stream_, multiplier, memory.factors());
      EXPECT_EQ(memory.result(), data.expected(c));
    }
  }

  std::optional<Gpu> gpu_;
  GpuStream stream_;
};

TEST_P(GpuConvolutionConformance, EveryDirectionNumberAndLayoutIsComputed) {
  constexpr ConvolutionSize kSizes[] = {{},
                                        {.images = 1, .channels = 3, .taps = 1, .padding = 0},
                                        {.stride = 2, .padding = 2},
                                        {.dilation = 2},
                                        {.groups = 2},
                                        {.channels = 6, .filters = 6, .groups = 6}};
  for (const FluidGpuDirection direction : kDirections) {
    for (const FluidGpuNumber number : kNumbers) {
      for (const bool last : {false, true}) {
        for (const ConvolutionSize& size : kSizes) {
          SCOPED_TRACE(::testing::Message() << direction << ' ' << number << ' ' << last << ' '
                                            << size.stride << size.dilation << size.groups);
          expect_right(convolution_of(direction, number, last, size));
        }
      }
    }
  }
}

TEST_P(GpuConvolutionConformance, WhatFollowsIsApplied) {
  for (const FluidGpuNumber number : kNumbers) {
    for (const bool last : {false, true}) {
      FluidGpuConvolution c = convolution_of(fluid_gpu_forward, number, last);
      c.bias = 1;
      expect_right(c);
      c.relu = 1;
      expect_right(c);
      for (const FluidGpuDirection direction : kDirections) {
        c = convolution_of(direction, number, last);
        c.adds = 1;
        expect_right(c);
      }
    }
  }
}

TEST_P(GpuConvolutionConformance, GraphsAddToWhatIsThere) {
  FluidGpuConvolution c = convolution_of(fluid_gpu_filter_gradient, fluid_gpu_f32);
  c.adds = 1;
  const ConvolutionData data(c);
  const ConvolutionMemory memory(*gpu_, stream_, c, data, kWorkspace);
  FluidGpuFactors f = memory.factors();
  const GpuMultiplier multiplier = gpu_->multiplier(c, gpu_->choices(c, kWorkspace, 1).at(0));
  gpu_->multiply(stream_, multiplier, f);
  gpu_->synchronize(stream_);
  f.result = const_cast<void*>(f.addend);
  gpu_->begin_capture(stream_);
  gpu_->multiply(stream_, multiplier, f);
  const GpuGraph graph = gpu_->end_capture(stream_);
  gpu_->launch(graph, stream_);
  EXPECT_EQ(memory.read(f.result), data.expected(c));
}

TEST_P(GpuConvolutionConformance, WhatThereCannotBeIsRefused) {
  const auto refuses = [&](auto change) {
    FluidGpuConvolution c = convolution_of(fluid_gpu_forward, fluid_gpu_f32);
    change(c);
    return error_of<DeviceError>([&] { gpu_->choices(c, kWorkspace, 1); });
  };
  using C = FluidGpuConvolution;
  EXPECT_EQ(refuses([](C& c) { c.number = fluid_gpu_f64; }), "a convolution of no kind");
  EXPECT_EQ(refuses([](C& c) { c.groups = 4; }), "a convolution of uneven groups");
  EXPECT_EQ(refuses([](C& c) { c.images = 0; }), "a convolution of nothing");
  const std::string epilogue = "a bias or a relu where there can be none";
  EXPECT_EQ(refuses([](C& c) { c.relu = 1; }), epilogue);
  EXPECT_EQ(refuses([](C& c) { c.bias = c.adds = 1; }), epilogue);
  EXPECT_EQ(refuses([](C& c) {
              c.direction = fluid_gpu_data_gradient;
              c.bias = 1;
            }),
            epilogue);
  const FluidGpuChoice none = {};
  EXPECT_FALSE(gpu_->multiplier(convolution_of(fluid_gpu_forward, fluid_gpu_f32), none));
}

INSTANTIATE_TEST_SUITE_P(Host, GpuConvolutionConformance,
                         ::testing::Values(HostPace::early, HostPace::late, HostPace::random));

}  // namespace
}  // namespace fluid
