#pragma once

#include "executor/cuda/objects.h"

/// What libraries compute of factors.
struct FluidGpuMultiplier {
  FluidGpuMultiplier(FluidGpu* of, bool has_addend, bool has_bias)
      : gpu(of), adds(has_addend), bias(has_bias) {}
  virtual ~FluidGpuMultiplier() = default;
  FluidGpuMultiplier(const FluidGpuMultiplier&) = delete;

  /// For messages: "multiplying matrices".
  virtual const char* doing() const = 0;
  virtual FluidGpuResult queue(FluidGpuStream* stream, const FluidGpuFactors& factors) = 0;

  FluidGpu* gpu;
  bool adds, bias;
  int64_t workspace = 0;  ///< bytes that it needs
  bool loaded = false;    ///< the code
};

namespace fluid::cuda {

/// Refuses a call that is misused, which a capture does not survive.
FluidGpuResult misused(FluidGpu* gpu, const char* doing, const std::string& why);

/// Begins to prepare something, which no capture allows; `fault`: what is wrong with it, or "".
FluidGpuResult begin_preparing(FluidGpu* gpu, const char* doing, const std::string& fault);

/// Gives a multiplier to the caller and to the belongings of its GPU.
void hand_over(std::unique_ptr<FluidGpuMultiplier> made, FluidGpuMultiplier** multiplier);

/// What is wrong with the addresses that a multiplier is given, or "".
std::string fault_of(const FluidGpuMultiplier& multiplier, const FluidGpuFactors& factors);

}  // namespace fluid::cuda
