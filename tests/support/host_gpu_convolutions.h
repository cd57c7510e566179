#pragma once

#include "tests/support/host_gpu_products.h"

namespace fluid::testing {

/// Why there can be no such convolution, or "".
std::string host_fault(const FluidGpuConvolution& convolution);

/// As of products: sums in four parts, or at once.
std::vector<FluidGpuAlgorithm> host_choices(const FluidGpuConvolution& convolution,
                                            int64_t workspace);
bool is_host_choice(const FluidGpuConvolution& convolution, const FluidGpuAlgorithm& choice);
std::vector<HostTouched> touched_by(const FluidGpuConvolution& convolution,
                                    const FluidGpuAlgorithm& choice,
                                    const FluidGpuOperands& factors);
std::vector<std::function<void()>> host_work(const FluidGpuConvolution& convolution,
                                             const FluidGpuAlgorithm& choice,
                                             const FluidGpuOperands& factors);

}  // namespace fluid::testing
