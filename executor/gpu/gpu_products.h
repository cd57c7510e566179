#pragma once

#include <map>
#include <memory>
#include <string>

#include "codegen/object_cache.h"
#include "executor/gpu/open_gpu.h"

namespace fluid {

/// Chooses how the library computes products, and keeps on disk what it chose, so that a program
/// has the same bits whenever it runs.
class GpuProducts {
 public:
  struct Options {
    std::string machine;    ///< all that a choice depends on besides the product
    int64_t workspace = 0;  ///< bytes that a product may have
    bool tune = true;       ///< by timing; else the library's favourite
  };
  GpuProducts(std::shared_ptr<const OpenGpu> gpu, Options options, ObjectCache cache)
      : gpu_(std::move(gpu)), options_(std::move(options)), cache_(std::move(cache)) {}

  /// A product that captures may have. It is computed on `factors` for that, several times where it
  /// is timed: what their result and workspace held is lost. Throws DeviceError when the library
  /// has no way to compute it.
  GpuMultiplier multiplier(const FluidGpuProduct& product, const FluidGpuFactors& factors);
  int64_t workspace() const { return options_.workspace; }

 private:
  GpuMultiplier kept(const std::string& key, const FluidGpuProduct& product,
                     const FluidGpuFactors& factors) const;
  GpuMultiplier chosen(const std::string& key, const FluidGpuProduct& product,
                       const FluidGpuFactors& factors);
  float milliseconds(const GpuMultiplier& multiplier, const FluidGpuFactors& factors) const;

  std::shared_ptr<const OpenGpu> gpu_;
  Options options_;
  ObjectCache cache_;
  std::map<std::string, FluidGpuChoice> choices_;  ///< of this process, by the product's key
};

/// A product in words: "f32 64 x 10 of 784, transposed a, with bias".
std::string text_of(const FluidGpuProduct& product);

}  // namespace fluid
