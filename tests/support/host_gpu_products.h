#pragma once

#include <functional>
#include <string>
#include <vector>

#include "executor/gpu_driver/backend_table.h"

namespace fluid::testing {

/// Why there can be no such product, or "".
std::string host_fault(const FluidGpuMatmul& product);

/// How the host multiplies: with a workspace for them, sums in four parts, which it says is fastest
/// though it takes two pieces of work instead of one; or at once.
std::vector<FluidGpuAlgorithm> host_choices(const FluidGpuMatmul& product, int64_t workspace);
bool is_host_choice(const FluidGpuMatmul& product, const FluidGpuAlgorithm& choice);

/// A stretch of memory that a product touches.
struct HostTouched {
  const void* address;
  int64_t bytes;
};
std::vector<HostTouched> touched_by(const FluidGpuMatmul& product, const FluidGpuAlgorithm& choice,
                                    const FluidGpuOperands& factors);

/// Returns the work of a product, in execution order.
std::vector<std::function<void()>> host_work(const FluidGpuMatmul& product,
                                             const FluidGpuAlgorithm& choice,
                                             const FluidGpuOperands& factors);

}  // namespace fluid::testing
