#include "executor/cuda/functions.h"
#include "executor/cuda/multiplier.h"

namespace fluid::cuda {
namespace {

cudaError_t destroy_multiplier(void* multiplier) {
  delete static_cast<FluidGpuPlan*>(multiplier);
  return cudaSuccess;
}

}  // namespace

FluidGpuResult misused(FluidGpu* gpu, const char* doing, const std::string& why) {
  if (gpu->captured != nullptr) gpu->capture_lost = true;
  return refuse(fluid_gpu_misused, std::string(doing) + ": " + why);
}

FluidGpuResult begin_preparing(FluidGpu* gpu, const char* doing, const std::string& fault) {
  const FluidGpuResult allowed = outside_captures(gpu, doing, [] { return cudaSuccess; });
  if (allowed != fluid_gpu_ok) return allowed;
  return fault.empty() ? fluid_gpu_ok : misused(gpu, doing, fault);
}

void register_plan(std::unique_ptr<FluidGpuPlan> made, FluidGpuPlan** multiplier) {
  *multiplier = made.release();
  (*multiplier)->gpu->belongings.add(*multiplier, destroy_multiplier);
}

std::string fault_of(const FluidGpuPlan& multiplier, const FluidGpuOperands& f) {
  struct Address {
    const void* at;
    bool needed;
    uintptr_t alignment = FLUID_GPU_PRODUCT_ALIGNMENT;
  };
  const Address addresses[] = {
      {f.a, true},
      {f.b, true},
      {f.addend, multiplier.adds},
      {f.bias, multiplier.bias},
      {f.result, true},
      {f.workspace, multiplier.workspace > 0, FLUID_GPU_WORKSPACE_ALIGNMENT}};
  for (const Address& address : addresses) {
    if (!address.needed) continue;
    if (address.at == nullptr) return "an address is missing";
    if (reinterpret_cast<uintptr_t>(address.at) % address.alignment != 0) {
      return "an address is not aligned";
    }
  }
  return "";
}

FluidGpuResult multiplier_destroy(FluidGpuPlan* multiplier) {
  return give_back(multiplier, "destroying a matmul or convolution plan");
}

FluidGpuResult multiply(FluidGpuStream* stream, FluidGpuPlan* multiplier,
                        const FluidGpuOperands* factors) {
  FluidGpu* gpu = stream->gpu;
  const FluidGpuResult current = on(gpu, "multiplying", [] { return cudaSuccess; });
  if (current != fluid_gpu_ok) return current;
  const bool captured = gpu->captured != nullptr;
  if (captured && !multiplier->loaded) {
    return misused(gpu, multiplier->doing(), "its first run must not be captured");
  }
  const std::string fault = fault_of(*multiplier, *factors);
  if (!fault.empty()) return misused(gpu, multiplier->doing(), fault);
  const FluidGpuResult queued = multiplier->queue(stream, *factors);
  multiplier->loaded |= queued == fluid_gpu_ok && !captured;
  return queued;
}

}  // namespace fluid::cuda
