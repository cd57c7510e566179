#pragma once

#include <vector>

#include "executor/gpu/gpu.h"
#include "ir/tensor.h"

namespace fluid::testing {

struct ProductSize {
  int64_t m = 5, n = 7, k = 9;
};

/// Without gaps in memory.
FluidGpuProduct product_of(FluidGpuNumber number, bool transpose_a = false,
                           bool transpose_b = false, int64_t count = 1, ProductSize size = {});

DType dtype_of(FluidGpuNumber number);

/// What lies in host memory for a product: small integers, whose sums f32 holds. `expected` is what
/// the table says it comes to, rounded to the result's type.
struct ProductData {
  explicit ProductData(const FluidGpuProduct& product);
  std::vector<double> expected(const FluidGpuProduct& product) const;

  Tensor a, b, addend, bias;
};

/// The same in a GPU's memory, with a workspace.
class ProductMemory {
 public:
  ProductMemory(const Gpu& gpu, const GpuStream& stream, const FluidGpuProduct& product,
                const ProductData& data, int64_t workspace);

  const FluidGpuFactors& factors() const { return factors_; }
  /// What lies at an address of the GPU's that a result, or an addend, has.
  std::vector<double> read(const void* address) const;
  std::vector<double> result() const { return read(factors_.result); }

 private:
  void* on_gpu(const Tensor& tensor);

  const Gpu& gpu_;
  const GpuStream& stream_;
  FluidGpuProduct product_;
  std::vector<GpuMemory> held_;
  FluidGpuFactors factors_ = {};
};

}  // namespace fluid::testing
