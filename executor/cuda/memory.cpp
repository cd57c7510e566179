#include "executor/cuda/functions.h"
#include "executor/cuda/objects.h"

namespace fluid::cuda {
namespace {

/// Stores an out-of-memory error message that states the free GPU memory.
FluidGpuResult out_of_memory_error(int64_t bytes) {
  size_t free = 0, total = 0;
  if (const auto error = cudaMemGetInfo(&free, &total); error != cudaSuccess) {
    return to_result(error, "querying the free memory");
  }
  return set_error(fluid_gpu_out_of_memory, std::to_string(bytes) + " bytes are needed, " +
                                                std::to_string(free) + " are free");
}

/// Allocates memory by calling `cuda_allocate`, and registers the memory as a resource of the GPU.
/// For 0 bytes, sets the address to null.
template <class Allocate>
FluidGpuResult allocate_tracked(FluidGpu* gpu, int64_t bytes, void** address,
                                Allocate&& cuda_allocate,
                                GpuResources::ReleaseResource release_resource) {
  *address = nullptr;
  return run_outside_capture(gpu, "taking memory", [&] {
    if (bytes < 0) return cudaErrorInvalidValue;
    if (bytes == 0) return cudaSuccess;
    const cudaError_t error = cuda_allocate(address, static_cast<size_t>(bytes));
    if (error == cudaSuccess) gpu->gpu_resources.add(*address, release_resource);
    return error;
  });
}

FluidGpuResult free_tracked(FluidGpu* gpu, void* address) {
  return run_outside_capture(gpu, "returning memory", [&] {
    return address == nullptr ? cudaSuccess : gpu->gpu_resources.release_resource(address);
  });
}

}  // namespace

FluidGpuResult allocate(FluidGpu* gpu, int64_t bytes, void** address) {
  const auto cuda_allocate = [](void** to, size_t size) { return cudaMalloc(to, size); };
  const FluidGpuResult result = allocate_tracked(gpu, bytes, address, cuda_allocate, cudaFree);
  return result == fluid_gpu_out_of_memory ? out_of_memory_error(bytes) : result;
}

FluidGpuResult release(FluidGpu* gpu, void* address) { return free_tracked(gpu, address); }

FluidGpuResult allocate_host(FluidGpu* gpu, int64_t bytes, void** address) {
  const auto cuda_allocate = [](void** to, size_t size) {
    return cudaHostAlloc(to, size, cudaHostAllocDefault);
  };
  const FluidGpuResult result = allocate_tracked(gpu, bytes, address, cuda_allocate, cudaFreeHost);
  if (result != fluid_gpu_out_of_memory) return result;
  return set_error(result, std::to_string(bytes) + " bytes of host memory could not be pinned");
}

FluidGpuResult release_host(FluidGpu* gpu, void* address) { return free_tracked(gpu, address); }

FluidGpuResult memory_info(FluidGpu* gpu, int64_t* free_bytes, int64_t* total_bytes) {
  return run_on(gpu, "querying the free memory", [&] {
    size_t free = 0, total = 0;
    const cudaError_t error = cudaMemGetInfo(&free, &total);
    *free_bytes = static_cast<int64_t>(free);
    *total_bytes = static_cast<int64_t>(total);
    return error;
  });
}

}  // namespace fluid::cuda
