#pragma once

// The convolutions that a GPU's library is tested with, described once: tests on a GPU compute
// them, and tests of cuDNN without one ask whether it has a way.

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "executor/gpu_driver/gpu_task.h"
#include "tests/support/convolution_data.h"
#include "tests/support/library_program.h"

namespace fluid::testing {

inline constexpr FluidGpuDirection kDirections[] = {fluid_gpu_forward, fluid_gpu_data_gradient,
                                                    fluid_gpu_filter_gradient};

using Convolutions = std::vector<FluidGpuConvolution>;

/// Convolutions of each size, in every direction, dtype and layout.
Convolutions convolutions_of(std::span<const ConvolutionSize> sizes);
/// Convolutions of this size, in every dtype and layout, with each epilogue.
Convolutions followed_convolutions(const ConvolutionSize& size);

/// Sizes for which kConformanceWorkspace is enough.
std::vector<ConvolutionSize> conformance_sizes();
inline constexpr ConvolutionSize kConformanceFollowed = {};
inline constexpr int64_t kConformanceWorkspace = 1 << 20;

/// Sizes for which kManyWorkspace is enough; large ones only on a real GPU.
std::vector<ConvolutionSize> many_sizes();
inline constexpr ConvolutionSize kManyFollowed = {
    .channels = 16, .height = 13, .width = 13, .filters = 24};
inline constexpr int64_t kManyWorkspace = int64_t{64} << 20;

/// A convolution as a program has it, with what follows; `images` are all of its values that have
/// two layouts.
struct ConvolutionProgram {
  std::string name;
  std::unique_ptr<LibraryProgram> program;
  Values images;
  bool channels_last = false;

  /// Sets the layout of the images: the layout of the case, or the plain one.
  void lay_out() const;
  void lay_plain() const;
};

/// The programs of convolution_cases(), in every direction, dtype and layout, with each epilogue.
/// kConformanceWorkspace is enough.
std::vector<ConvolutionProgram> convolution_programs();

}  // namespace fluid::testing
