#pragma once

#include "executor/cuda/objects.h"

/// A plan of a matmul or a convolution.
struct FluidGpuPlan {
  FluidGpuPlan(FluidGpu* of, bool has_addend, bool has_bias)
      : gpu(of), adds(has_addend), bias(has_bias) {}
  virtual ~FluidGpuPlan() = default;
  FluidGpuPlan(const FluidGpuPlan&) = delete;

  /// The action in messages: "multiplying matrices".
  virtual const char* doing() const = 0;
  virtual FluidGpuResult queue(FluidGpuStream* stream, const FluidGpuOperands& factors) = 0;

  FluidGpu* gpu;
  bool adds, bias;
  int64_t workspace = 0;  ///< bytes
  bool loaded = false;    ///< the plan's code is on the GPU
};

namespace fluid::cuda {

/// Reports a misused call, and marks a capture in progress as invalidated.
FluidGpuResult misused(FluidGpu* gpu, const char* doing, const std::string& why);

/// Checks that no capture is in progress and that `fault` is "". Must precede planning.
FluidGpuResult begin_preparing(FluidGpu* gpu, const char* doing, const std::string& fault);

/// Hands a plan to the caller and registers it with its GPU.
void register_plan(std::unique_ptr<FluidGpuPlan> made, FluidGpuPlan** gpu_plan);

/// Why the operands' addresses are invalid, or "".
std::string fault_of(const FluidGpuPlan& gpu_plan, const FluidGpuOperands& factors);

}  // namespace fluid::cuda
