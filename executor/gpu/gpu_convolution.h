#pragma once

#include <optional>
#include <string_view>

#include "executor/gpu/backend_table.h"
#include "passes/target.h"

namespace fluid {

/// The kernel of the library that takes `op`, one of a convolution; empty where none does.
std::string_view gpu_convolution_kernel(const ir::Op& op);

/// `op` followed by `epilogue` (a bias, perhaps with a relu, or the sum with a tensor) as a
/// convolution for the library; empty where it is none.
std::optional<FluidGpuConvolution> gpu_convolution(const ir::Op& op, const Chain& epilogue,
                                                   int64_t batch);

}  // namespace fluid
