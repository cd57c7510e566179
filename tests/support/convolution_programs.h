#pragma once

// Convolutions and their gradients as programs of one library call.

#include <vector>

#include "tests/support/library_program.h"

namespace fluid::testing {

/// A convolution with a bias and a relu, and the gradients of the convolution.
struct ConvolutionPrograms {
  LibraryProgram forward, for_input, for_filter;

  explicit ConvolutionPrograms(const ConvolutionCase& c, DType dtype = f32);
  std::vector<LibraryProgram*> programs() { return {&forward, &for_input, &for_filter}; }
};

/// Small convolutions with windows of all kinds: strides, dilation, asymmetric padding.
std::vector<ConvolutionCase> windows_of_all_kinds();

/// Makes the images of a convolution channels-last.
void use_channels_last(LibraryProgram& p);

/// Expects that the only candidate for each program computes what the ops are defined to give.
void expect_convolutions(const ConvolutionCase& c, DType dtype, double tolerance,
                         const std::function<std::vector<KernelCandidate>(LibraryProgram&)>& all,
                         const MakeKernel& make);

/// Expects that 1, 2, 3 and 7 threads compute the same bits.
void expect_equal_bits_of_threads(
    const ConvolutionCase& c, DType dtype,
    const std::function<std::vector<KernelCandidate>(LibraryProgram&)>& all,
    const MakeKernel& make);

}  // namespace fluid::testing
