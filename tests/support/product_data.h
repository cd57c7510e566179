#pragma once

#include <vector>

#include "tests/support/factor_memory.h"

namespace fluid::testing {

struct ProductSize {
  int64_t m = 5, n = 7, k = 9;
};

/// Without gaps in memory.
FluidGpuMatmul product_of(FluidGpuDtype number, bool transpose_a = false, bool transpose_b = false,
                          int64_t count = 1, ProductSize size = {});

DType dtype_of(FluidGpuDtype number);

/// `expected` is what the table says a product of small integers comes to, rounded to the result's
/// type.
struct ProductData : FactorData {
  explicit ProductData(const FluidGpuMatmul& product);
  std::vector<double> expected(const FluidGpuMatmul& product) const;
};

struct ProductMemory : FactorMemory {
  ProductMemory(const Gpu& gpu, const GpuStream& stream, const FluidGpuMatmul& product,
                const ProductData& data, int64_t workspace)
      : FactorMemory(gpu, stream, data, product.has_addend != 0, workspace) {}
};

}  // namespace fluid::testing
