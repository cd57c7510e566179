#pragma once

#include <functional>
#include <string>
#include <vector>

#include "executor/gpu/backend_table.h"

namespace fluid::testing {

/// Why there can be no such product, or "".
std::string host_fault(const FluidGpuProduct& product);

/// How the host multiplies: with a workspace for them, sums in four parts, which it says is fastest
/// though it takes two pieces of work instead of one; or at once.
std::vector<FluidGpuChoice> host_choices(const FluidGpuProduct& product, int64_t workspace);
bool is_host_choice(const FluidGpuProduct& product, const FluidGpuChoice& choice);

/// A stretch of memory that a product touches.
struct HostTouched {
  const void* address;
  int64_t bytes;
};
std::vector<HostTouched> touched_by(const FluidGpuProduct& product, const FluidGpuChoice& choice,
                                    const FluidGpuFactors& factors);

/// What is to be done, one after the other.
std::vector<std::function<void()>> host_work(const FluidGpuProduct& product,
                                             const FluidGpuChoice& choice,
                                             const FluidGpuFactors& factors);

}  // namespace fluid::testing
