#include <algorithm>

#include "executor/cuda/convolution_engines.h"
#include "executor/cuda/functions.h"
#include "executor/cuda/gpu_plan.h"

namespace fluid::cuda {
namespace {

FluidGpuResult dnn_result(FluidGpu* gpu, const char* action, cudnnStatus_t status) {
  if (status == CUDNN_STATUS_SUCCESS) return fluid_gpu_ok;
  const std::string why = cudnnGetErrorString(status);
  if (is_rejection(status)) return invalid_usage(gpu, action, why);
  const bool memory = status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED ||
                      status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
  return set_error(memory ? fluid_gpu_out_of_memory : fluid_gpu_failed,
                   std::string(action) + ": " + why);
}

cudaError_t destroy_dnn(void* handle) {
  const cudnnStatus_t status = cudnnDestroy(static_cast<cudnnHandle_t>(handle));
  return status == CUDNN_STATUS_SUCCESS ? cudaSuccess : cudaErrorUnknown;
}

/// Creates the GPU's cuDNN handle `gpu->dnn` unless the handle exists.
cudnnStatus_t ensure_cudnn_handle(FluidGpu* gpu) {
  const std::lock_guard lock(gpu->dnn_mutex);
  if (gpu->dnn != nullptr) return CUDNN_STATUS_SUCCESS;
  const cudnnStatus_t status = cudnnCreate(&gpu->dnn);
  if (status == CUDNN_STATUS_SUCCESS) gpu->gpu_resources.add(gpu->dnn, destroy_dnn);
  return status;
}

/// Validates a convolution, and ensures that the cuDNN handle exists.
FluidGpuResult validate(FluidGpu* gpu, const char* action, const FluidGpuConvolution& convolution) {
  const FluidGpuResult checked = check_before_planning(gpu, action, validation_error(convolution));
  return checked == fluid_gpu_ok ? dnn_result(gpu, action, ensure_cudnn_handle(gpu)) : checked;
}

struct GpuConvolutionPlan : FluidGpuPlan {
  GpuConvolutionPlan(FluidGpu* gpu, const FluidGpuConvolution& convolution)
      : FluidGpuPlan(gpu, convolution.has_addend != 0, convolution.bias != 0),
        description(convolution, gpu->dnn) {}

  const char* action() const override { return "computing a convolution"; }
  FluidGpuResult enqueue(FluidGpuStream* stream, const FluidGpuOperands& operands) override;
  cudnnStatus_t execute(FluidGpuStream* stream, const FluidGpuOperands& operands) const;

  ConvolutionDescription description;
  std::optional<ConvolutionPlan> planned;
};

/// Copies the addend to the result first, because cuDNN adds to the result's content (beta = 1).
FluidGpuResult GpuConvolutionPlan::enqueue(FluidGpuStream* stream, const FluidGpuOperands& f) {
  if (has_addend && f.addend != f.result) {
    const cudaError_t copied =
        cudaMemcpyAsync(f.result, f.addend, static_cast<size_t>(description.result_bytes()),
                        cudaMemcpyDeviceToDevice, stream->handle);
    if (copied != cudaSuccess) return to_result(copied, action());
  }
  return dnn_result(gpu, action(), execute(stream, f));
}

cudnnStatus_t GpuConvolutionPlan::execute(FluidGpuStream* stream, const FluidGpuOperands& f) const {
  std::vector<int64_t> ids = {description.a(), description.b(), description.result()};
  std::vector<void*> addresses = {const_cast<void*>(f.a), const_cast<void*>(f.b), f.result};
  if (has_bias) {
    ids.push_back(ConvolutionDescription::bias);
    addresses.push_back(const_cast<void*>(f.bias));
  }
  DnnDescriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, std::span<const int64_t>(ids))
      .set_addresses(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, addresses)
      .set_addresses(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, std::span<void* const>(&f.workspace, 1));
  pack.finalize();
  if (!pack.ok()) return pack.status();
  const std::lock_guard lock(gpu->dnn_mutex);
  const cudnnStatus_t set = cudnnSetStream(gpu->dnn, stream->handle);
  if (set != CUDNN_STATUS_SUCCESS) return set;
  return cudnnBackendExecute(gpu->dnn, planned->plan.get(), pack.get());
}

}  // namespace

FluidGpuResult convolution_algorithms(FluidGpu* gpu, const FluidGpuConvolution* convolution,
                                      int64_t workspace, FluidGpuAlgorithm* algorithms,
                                      int32_t* count) {
  const char* action = "choosing a convolution algorithm";
  const int max_count = *count;
  *count = 0;
  if (const FluidGpuResult ready = validate(gpu, action, *convolution); ready != fluid_gpu_ok) {
    return ready;
  }
  const ConvolutionEngines found =
      convolution_engines(*convolution, DnnDevice(gpu->dnn), workspace, max_count);
  std::ranges::copy(found.algorithms, algorithms);
  *count = static_cast<int32_t>(found.algorithms.size());
  return dnn_result(gpu, action, found.status);
}

FluidGpuResult convolution_plan_create(FluidGpu* gpu, const FluidGpuConvolution* convolution,
                                       const FluidGpuAlgorithm* algorithm,
                                       FluidGpuPlan** gpu_plan) {
  const char* action = "preparing a convolution";
  if (const FluidGpuResult ready = validate(gpu, action, *convolution); ready != fluid_gpu_ok) {
    return ready;
  }
  auto made = std::make_unique<GpuConvolutionPlan>(gpu, *convolution);
  made->planned = create_convolution_plan(made->description, DnnDevice(gpu->dnn), *algorithm);
  made->workspace = algorithm->workspace;
  if (!made->planned->plan.ok()) {
    return dnn_result(gpu, action, made->planned->plan.status());
  }
  if (made->planned->workspace > made->workspace) {
    return invalid_usage(gpu, action, "the algorithm needs more workspace than it declares");
  }
  register_plan(std::move(made), gpu_plan);
  return fluid_gpu_ok;
}

}  // namespace fluid::cuda
