#include "executor/cuda/gpu_plan.h"

#include "executor/cuda/functions.h"

namespace fluid::cuda {
namespace {

cudaError_t delete_gpu_plan(void* gpu_plan) {
  delete static_cast<FluidGpuPlan*>(gpu_plan);
  return cudaSuccess;
}

}  // namespace

FluidGpuResult invalid_usage(FluidGpu* gpu, const char* action, const std::string& why) {
  if (gpu->capturing_stream != nullptr) gpu->capture_invalidated = true;
  return set_error(fluid_gpu_invalid_usage, std::string(action) + ": " + why);
}

FluidGpuResult check_before_planning(FluidGpu* gpu, const char* action, const std::string& error) {
  const FluidGpuResult allowed = run_outside_capture(gpu, action, [] { return cudaSuccess; });
  if (allowed != fluid_gpu_ok) return allowed;
  return error.empty() ? fluid_gpu_ok : invalid_usage(gpu, action, error);
}

void register_plan(std::unique_ptr<FluidGpuPlan> plan, FluidGpuPlan** gpu_plan) {
  *gpu_plan = plan.release();
  (*gpu_plan)->gpu->gpu_resources.add(*gpu_plan, delete_gpu_plan);
}

std::string validation_error(const FluidGpuPlan& gpu_plan, const FluidGpuOperands& f) {
  struct Address {
    const void* at;
    bool needed;
    uintptr_t alignment = FLUID_GPU_TENSOR_ALIGNMENT;
  };
  const Address addresses[] = {
      {f.a, true},
      {f.b, true},
      {f.addend, gpu_plan.has_addend},
      {f.bias, gpu_plan.has_bias},
      {f.result, true},
      {f.workspace, gpu_plan.workspace > 0, FLUID_GPU_WORKSPACE_ALIGNMENT}};
  for (const Address& address : addresses) {
    if (!address.needed) continue;
    if (address.at == nullptr) return "an address is missing";
    if (reinterpret_cast<uintptr_t>(address.at) % address.alignment != 0) {
      return "an address is not aligned";
    }
  }
  return "";
}

FluidGpuResult plan_destroy(FluidGpuPlan* gpu_plan) {
  return release_resource(gpu_plan, "destroying a matmul or convolution plan");
}

FluidGpuResult plan_execute(FluidGpuStream* stream, FluidGpuPlan* gpu_plan,
                            const FluidGpuOperands* operands) {
  FluidGpu* gpu = stream->gpu;
  const FluidGpuResult current = run_on(gpu, "multiplying", [] { return cudaSuccess; });
  if (current != fluid_gpu_ok) return current;
  const bool captured = gpu->capturing_stream != nullptr;
  if (captured && !gpu_plan->loaded) {
    return invalid_usage(gpu, gpu_plan->action(), "its first run must not be captured");
  }
  const std::string error = validation_error(*gpu_plan, *operands);
  if (!error.empty()) return invalid_usage(gpu, gpu_plan->action(), error);
  const FluidGpuResult queued = gpu_plan->enqueue(stream, *operands);
  gpu_plan->loaded |= queued == fluid_gpu_ok && !captured;
  return queued;
}

}  // namespace fluid::cuda
