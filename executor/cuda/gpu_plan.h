#pragma once

#include "executor/cuda/objects.h"

/// A matmul or convolution that is ready to execute with a chosen algorithm.
struct FluidGpuPlan {
  FluidGpuPlan(FluidGpu* plan_gpu, bool addend, bool bias)
      : gpu(plan_gpu), has_addend(addend), has_bias(bias) {}
  virtual ~FluidGpuPlan() = default;
  FluidGpuPlan(const FluidGpuPlan&) = delete;

  /// Returns a description of the plan's work, such as "multiplying matrices", for error messages.
  virtual const char* action() const = 0;
  /// Enqueues one execution of the plan on `stream`.
  virtual FluidGpuResult enqueue(FluidGpuStream* stream, const FluidGpuOperands& operands) = 0;

  FluidGpu* gpu;
  bool has_addend, has_bias;
  int64_t workspace = 0;  ///< workspace that the plan needs, in bytes
  bool loaded = false;    ///< whether the plan's kernels have been loaded onto the GPU
};

namespace fluid::cuda {

/// Stores the error message of an invalid call, invalidates a capture in progress, and returns
/// fluid_gpu_invalid_usage.
FluidGpuResult invalid_usage(FluidGpu* gpu, const char* action, const std::string& why);

/// Checks that a plan may be created. `error`: result of validation_error(). Returns
/// fluid_gpu_invalid_usage if `error` is not "", or while a stream capture is in progress.
FluidGpuResult check_before_planning(FluidGpu* gpu, const char* action, const std::string& error);

/// Registers `plan` as a resource of its GPU, which takes ownership of the plan. Stores the address
/// of the plan in `gpu_plan`.
void register_plan(std::unique_ptr<FluidGpuPlan> plan, FluidGpuPlan** gpu_plan);

/// Returns why the operands' addresses are invalid for the plan, or "" if they are valid.
std::string validation_error(const FluidGpuPlan& gpu_plan, const FluidGpuOperands& operands);

}  // namespace fluid::cuda
