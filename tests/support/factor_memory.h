#pragma once

#include <vector>

#include "executor/gpu_driver/gpu.h"
#include "ir/tensor.h"

namespace fluid::testing {

/// Operands of a product or a convolution in host memory.
struct FactorData {
  Tensor a, b, addend, bias;  ///< the addend has the result's type and size
};

/// Small integers, whose sums f32 holds.
Tensor small_integers(DType dtype, int64_t count, int64_t seed);

/// A GPU's memory of factors, with a workspace.
class FactorMemory {
 public:
  FactorMemory(const Gpu& gpu, const GpuStream& stream, const FactorData& data, bool has_addend,
               int64_t workspace);

  const FluidGpuOperands& factors() const { return factors_; }
  /// Returns the elements at a GPU address of a result or an addend.
  std::vector<double> read(const void* address) const;
  std::vector<double> result() const { return read(factors_.result); }

 private:
  void* on_gpu(const Tensor& tensor);

  const Gpu& gpu_;
  const GpuStream& stream_;
  DType result_;
  int64_t results_;
  std::vector<GpuMemory> held_;
  FluidGpuOperands factors_ = {};
};

}  // namespace fluid::testing
