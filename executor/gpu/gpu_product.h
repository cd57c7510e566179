#pragma once

#include <optional>
#include <string_view>

#include "executor/gpu/backend_table.h"
#include "passes/target.h"

namespace fluid {

inline constexpr std::string_view kGpuProductKernel = "cublaslt.matmul";

/// `op` followed by `epilogue` (a bias, a relu, both, or the sum with a matrix) as a product for
/// the library; empty where it is none.
std::optional<FluidGpuProduct> gpu_product(const ir::Op& op, const Chain& epilogue, int64_t batch);

}  // namespace fluid
