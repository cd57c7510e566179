#include "executor/cuda/gpu_plan.h"

#include "executor/cuda/functions.h"

namespace fluid::cuda {
namespace {

cudaError_t delete_gpu_plan(void* gpu_plan) {
  delete static_cast<FluidGpuPlan*>(gpu_plan);
  return cudaSuccess;
}

}  // namespace

FluidGpuResult misused(FluidGpu* gpu, const char* doing, const std::string& why) {
  if (gpu->captured != nullptr) gpu->capture_lost = true;
  return set_error(fluid_gpu_misused, std::string(doing) + ": " + why);
}

FluidGpuResult begin_preparing(FluidGpu* gpu, const char* doing, const std::string& fault) {
  const FluidGpuResult allowed = outside_captures(gpu, doing, [] { return cudaSuccess; });
  if (allowed != fluid_gpu_ok) return allowed;
  return fault.empty() ? fluid_gpu_ok : misused(gpu, doing, fault);
}

void register_plan(std::unique_ptr<FluidGpuPlan> made, FluidGpuPlan** gpu_plan) {
  *gpu_plan = made.release();
  (*gpu_plan)->gpu->gpu_resources.add(*gpu_plan, delete_gpu_plan);
}

std::string fault_of(const FluidGpuPlan& gpu_plan, const FluidGpuOperands& f) {
  struct Address {
    const void* at;
    bool needed;
    uintptr_t alignment = FLUID_GPU_PRODUCT_ALIGNMENT;
  };
  const Address addresses[] = {
      {f.a, true},
      {f.b, true},
      {f.addend, gpu_plan.adds},
      {f.bias, gpu_plan.bias},
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

FluidGpuResult multiply(FluidGpuStream* stream, FluidGpuPlan* gpu_plan,
                        const FluidGpuOperands* factors) {
  FluidGpu* gpu = stream->gpu;
  const FluidGpuResult current = on(gpu, "multiplying", [] { return cudaSuccess; });
  if (current != fluid_gpu_ok) return current;
  const bool captured = gpu->captured != nullptr;
  if (captured && !gpu_plan->loaded) {
    return misused(gpu, gpu_plan->doing(), "its first run must not be captured");
  }
  const std::string fault = fault_of(*gpu_plan, *factors);
  if (!fault.empty()) return misused(gpu, gpu_plan->doing(), fault);
  const FluidGpuResult queued = gpu_plan->queue(stream, *factors);
  gpu_plan->loaded |= queued == fluid_gpu_ok && !captured;
  return queued;
}

}  // namespace fluid::cuda
