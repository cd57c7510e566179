#pragma once

#include <optional>
#include <string_view>

#include "executor/gpu/backend_table.h"
#include "passes/target.h"

namespace fluid {

inline constexpr std::string_view kGpuProductKernel = "cublaslt.matmul";

/// Describes `op` and `epilogue` as a library matmul. The epilogue is a bias, a relu, both, or an
/// addend. Nothing when the library cannot compute it.
std::optional<FluidGpuMatmul> gpu_product(const ir::Op& op, const Chain& epilogue, int64_t batch);

}  // namespace fluid
