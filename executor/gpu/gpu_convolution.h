#pragma once

#include <optional>
#include <string_view>

#include "executor/gpu/backend_table.h"
#include "passes/target.h"

namespace fluid {

/// The name of the convolution kernel that takes `op`; empty when none does.
std::string_view gpu_convolution_kernel(const ir::Op& op);

/// Describes `op` and `epilogue` as a library convolution. The epilogue is a bias with an optional
/// relu, or an addend. Nothing when the library cannot compute it.
std::optional<FluidGpuConvolution> gpu_convolution(const ir::Op& op, const Chain& epilogue,
                                                   int64_t batch);

}  // namespace fluid
