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

/// Of each of these sizes, in every direction, number and layout.
Convolutions convolutions_of(std::span<const ConvolutionSize> sizes);
/// Of this size, in every number and layout, with all that may follow.
Convolutions followed_convolutions(const ConvolutionSize& size);

/// For which kConformanceWorkspace is enough.
std::vector<ConvolutionSize> conformance_sizes();
inline constexpr ConvolutionSize kConformanceFollowed = {};
inline constexpr int64_t kConformanceWorkspace = 1 << 20;

/// Likewise; those that a GPU alone computes are large.
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

  /// Lets the images lie as they are to be, or plain.
  void lay_out() const;
  void lay_plain() const;
};

/// Of convolution_cases(), in every direction, number and layout, with all that may follow.
/// kConformanceWorkspace is enough.
std::vector<ConvolutionProgram> convolution_programs();

}  // namespace fluid::testing
