#pragma once

#include <vector>

#include "tests/support/factor_memory.h"

namespace fluid::testing {

struct ConvolutionSize {
  int64_t images = 2, channels = 4, height = 7, width = 9, filters = 6;
  int64_t taps = 3, stride = 1, padding = 1, dilation = 1, groups = 1;
};

FluidGpuConvolution convolution_of(FluidGpuDirection direction, FluidGpuDtype number,
                                   bool channels_last = false, ConvolutionSize size = {});

/// `expected` is what the table says a convolution of small integers comes to, rounded to the
/// result's type.
struct ConvolutionData : FactorData {
  explicit ConvolutionData(const FluidGpuConvolution& convolution);
  std::vector<double> expected(const FluidGpuConvolution& convolution) const;
};

/// Expects results to be near enough. Sums of small integers are exact, but algorithms may
/// transform what they add up (Winograd, FFT), and round that.
void expect_convolved(const std::vector<double>& found, const std::vector<double>& expected,
                      FluidGpuDtype number);

struct ConvolutionMemory : FactorMemory {
  ConvolutionMemory(const Gpu& gpu, const GpuStream& stream, const FluidGpuConvolution& convolution,
                    const ConvolutionData& data, int64_t workspace)
      : FactorMemory(gpu, stream, data, convolution.has_addend != 0, workspace) {}
};

}  // namespace fluid::testing
