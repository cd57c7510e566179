#include <algorithm>

#include "executor/cuda/convolution_engines.h"
#include "executor/cuda/functions.h"
#include "executor/cuda/gpu_plan.h"

namespace fluid::cuda {
namespace {

FluidGpuResult answer_of(FluidGpu* gpu, const char* doing, cudnnStatus_t status) {
  if (status == CUDNN_STATUS_SUCCESS) return fluid_gpu_ok;
  const std::string why = cudnnGetErrorString(status);
  if (is_rejection(status)) return misused(gpu, doing, why);
  const bool memory = status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED ||
                      status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
  return set_error(memory ? fluid_gpu_out_of_memory : fluid_gpu_failed,
                   std::string(doing) + ": " + why);
}

cudaError_t destroy_dnn(void* handle) {
  const cudnnStatus_t status = cudnnDestroy(static_cast<cudnnHandle_t>(handle));
  return status == CUDNN_STATUS_SUCCESS ? cudaSuccess : cudaErrorUnknown;
}

/// Creates the GPU's only cuDNN handle, `gpu->dnn`, if needed.
cudnnStatus_t require_dnn(FluidGpu* gpu) {
  const std::lock_guard lock(gpu->dnn_mutex);
  if (gpu->dnn != nullptr) return CUDNN_STATUS_SUCCESS;
  const cudnnStatus_t status = cudnnCreate(&gpu->dnn);
  if (status == CUDNN_STATUS_SUCCESS) gpu->gpu_resources.add(gpu->dnn, destroy_dnn);
  return status;
}

/// Validates a convolution before planning.
FluidGpuResult prepare(FluidGpu* gpu, const char* doing, const FluidGpuConvolution& convolution) {
  const FluidGpuResult begun = begin_preparing(gpu, doing, fault_of(convolution));
  return begun == fluid_gpu_ok ? answer_of(gpu, doing, require_dnn(gpu)) : begun;
}

struct Convolution : FluidGpuPlan {
  Convolution(FluidGpu* gpu, const FluidGpuConvolution& of)
      : FluidGpuPlan(gpu, of.adds != 0, of.bias != 0), description(of, gpu->dnn) {}

  const char* doing() const override { return "computing a convolution"; }
  FluidGpuResult queue(FluidGpuStream* stream, const FluidGpuOperands& factors) override;
  cudnnStatus_t execute(FluidGpuStream* stream, const FluidGpuOperands& factors) const;

  ConvolutionDescription description;
  std::optional<ConvolutionPlan> planned;
};

/// cuDNN adds to the result's content (beta = 1), so the addend is copied there first.
FluidGpuResult Convolution::queue(FluidGpuStream* stream, const FluidGpuOperands& f) {
  if (adds && f.addend != f.result) {
    const cudaError_t copied =
        cudaMemcpyAsync(f.result, f.addend, static_cast<size_t>(description.result_bytes()),
                        cudaMemcpyDeviceToDevice, stream->handle);
    if (copied != cudaSuccess) return answer(copied, doing());
  }
  return answer_of(gpu, doing(), execute(stream, f));
}

cudnnStatus_t Convolution::execute(FluidGpuStream* stream, const FluidGpuOperands& f) const {
  std::vector<int64_t> numbers = {description.a(), description.b(), description.result()};
  std::vector<void*> addresses = {const_cast<void*>(f.a), const_cast<void*>(f.b), f.result};
  if (bias) {
    numbers.push_back(ConvolutionDescription::bias);
    addresses.push_back(const_cast<void*>(f.bias));
  }
  DnnDescriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, std::span<const int64_t>(numbers))
      .set_addresses(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, addresses)
      .set_addresses(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, std::span<void* const>(&f.workspace, 1));
  pack.finish();
  if (!pack.good()) return pack.status();
  const std::lock_guard lock(gpu->dnn_mutex);
  const cudnnStatus_t set = cudnnSetStream(gpu->dnn, stream->handle);
  if (set != CUDNN_STATUS_SUCCESS) return set;
  return cudnnBackendExecute(gpu->dnn, planned->plan.get(), pack.get());
}

}  // namespace

FluidGpuResult convolution_choices(FluidGpu* gpu, const FluidGpuConvolution* convolution,
                                   int64_t workspace, FluidGpuChoice* choices, int32_t* count) {
  const char* doing = "choosing a convolution algorithm";
  const int room = *count;
  *count = 0;
  if (const FluidGpuResult ready = prepare(gpu, doing, *convolution); ready != fluid_gpu_ok) {
    return ready;
  }
  const ConvolutionEngines found =
      convolution_engines(*convolution, DnnMachine(gpu->dnn), workspace, room);
  std::ranges::copy(found.choices, choices);
  *count = static_cast<int32_t>(found.choices.size());
  return answer_of(gpu, doing, found.status);
}

FluidGpuResult convolution_plan_create(FluidGpu* gpu, const FluidGpuConvolution* convolution,
                                       const FluidGpuChoice* choice, FluidGpuPlan** gpu_plan) {
  const char* doing = "preparing a convolution";
  if (const FluidGpuResult ready = prepare(gpu, doing, *convolution); ready != fluid_gpu_ok) {
    return ready;
  }
  auto made = std::make_unique<Convolution>(gpu, *convolution);
  made->planned = plan_of(made->description, DnnMachine(gpu->dnn), *choice);
  made->workspace = choice->workspace;
  if (!made->planned->plan.good()) {
    return answer_of(gpu, doing, made->planned->plan.status());
  }
  if (made->planned->workspace > made->workspace) {
    return misused(gpu, doing, "the algorithm needs more workspace than it declares");
  }
  register_plan(std::move(made), gpu_plan);
  return fluid_gpu_ok;
}

}  // namespace fluid::cuda
