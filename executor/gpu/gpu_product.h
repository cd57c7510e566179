#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "executor/gpu/backend_table.h"
#include "passes/target.h"

namespace fluid {

inline constexpr std::string_view kGpuProductKernel = "cublaslt.matmul";

/// `op` followed by `epilogue` (a bias, a relu, both, or the sum with a matrix) as a product for
/// the library; empty where it is none.
std::optional<FluidGpuProduct> gpu_product(const ir::Op& op, const Chain& epilogue, int64_t batch);

/// A product that a fused op was given to the library for, and where it finds its matrices.
struct GpuProductCall {
  GpuProductCall(const ir::Op& fused, int64_t batch, bool tf32);

  FluidGpuProduct product = {};
  std::vector<size_t> buffers;  ///< of the fused op: a, b, what is added if anything, the result

  FluidGpuFactors factors(const std::vector<void*>& addresses, void* workspace) const;
};

}  // namespace fluid
