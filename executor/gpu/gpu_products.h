#pragma once

#include <memory>

#include "executor/gpu/open_gpu.h"
#include "executor/gpu/product_record.h"

namespace fluid {

/// Chooses how the library computes products, and keeps what it chose, so that a program has the
/// same bits whenever it runs.
class GpuProducts {
 public:
  GpuProducts(std::shared_ptr<const OpenGpu> gpu, ProductRecord record)
      : gpu_(std::move(gpu)), record_(std::move(record)) {}

  /// Whether the library has a way to compute a product. Where it has none, that is remembered: the
  /// record refuses it.
  bool has_way(const FluidGpuProduct& product);
  /// A product that captures may have. It is computed on `factors` for that, several times where it
  /// is timed: what their result and workspace held is lost. Throws DeviceError when the library
  /// has no way to compute it.
  GpuMultiplier multiplier(const FluidGpuProduct& product, const FluidGpuFactors& factors);
  /// Bytes that a product may have.
  int64_t workspace() const { return record_.terms().workspace; }
  const ProductRecord& record() const { return record_; }
  /// ProductRecord::take(): multipliers made before may be others than it says then.
  bool take(const ProductRecord::Decisions& decisions);
  /// How often decisions were taken that changed multipliers.
  int revision() const { return revision_; }

 private:
  GpuMultiplier kept(const FluidGpuProduct& product, const FluidGpuFactors& factors);
  GpuMultiplier favourite(const FluidGpuProduct& product, const FluidGpuFactors& factors);
  GpuMultiplier fastest(const FluidGpuProduct& product, const FluidGpuFactors& factors);
  void compute(const GpuMultiplier& multiplier, const FluidGpuFactors& factors) const;
  float milliseconds(const GpuMultiplier& multiplier, const FluidGpuFactors& factors) const;

  std::shared_ptr<const OpenGpu> gpu_;
  ProductRecord record_;
  int revision_ = 0;
};

}  // namespace fluid
