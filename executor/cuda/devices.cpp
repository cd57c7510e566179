#include <cublasLt.h>
#include <cudnn.h>
#include <nccl.h>
#include <nvJitLink.h>

#include <algorithm>
#include <cstring>

#include "executor/cuda/functions.h"
#include "executor/cuda/objects.h"

namespace fluid::cuda {
namespace {

cudaError_t attribute(int device, cudaDeviceAttr which, int64_t& value) {
  int found = 0;
  const cudaError_t error = cudaDeviceGetAttribute(&found, which, device);
  value = found;
  return error;
}

cudaError_t describe_memory(int device, FluidGpuDescription& d) {
  if (const auto error = cudaSetDevice(device); error != cudaSuccess) return error;
  size_t free = 0, total = 0;
  const cudaError_t error = cudaMemGetInfo(&free, &total);
  d.free_memory = static_cast<int64_t>(free);
  d.memory = static_cast<int64_t>(total);
  return error;
}

cudaError_t describe_device(int device, FluidGpuDescription& d) {
  cudaDeviceProp properties;
  if (const auto error = cudaGetDeviceProperties(&properties, device); error != cudaSuccess) {
    return error;
  }
  const size_t length = std::min(std::strlen(properties.name), sizeof d.name - 1);
  std::memcpy(d.name, properties.name, length);
  d.major = properties.major;
  d.minor = properties.minor;
  d.multiprocessors = properties.multiProcessorCount;
  d.memory_bus_bits = properties.memoryBusWidth;
  const cudaError_t clock = attribute(device, cudaDevAttrClockRate, d.clock_khz);
  if (clock != cudaSuccess) return clock;
  return attribute(device, cudaDevAttrMemoryClockRate, d.memory_clock_khz);
}

}  // namespace

FluidGpuResult versions(FluidGpuVersions* versions) {
  int driver = 0, runtime = 0, collectives = 0;
  unsigned major = 0, minor = 0;
  cudaError_t error = cudaDriverGetVersion(&driver);
  if (error == cudaSuccess) error = cudaRuntimeGetVersion(&runtime);
  if (error != cudaSuccess) return to_result(error, "querying versions");
  if (ncclGetVersion(&collectives) != ncclSuccess) {
    return set_error(fluid_gpu_failed, "NCCL does not report its version");
  }
  if (nvJitLinkVersion(&major, &minor) != NVJITLINK_SUCCESS) {
    return set_error(fluid_gpu_failed, "nvJitLink does not report its version");
  }
  *versions = {.driver = driver,
               .runtime = runtime,
               .blas = static_cast<int64_t>(cublasLtGetVersion()),
               .dnn = static_cast<int64_t>(cudnnGetVersion()),
               .collectives = collectives,
               .linker = 1000 * static_cast<int64_t>(major) + 10 * static_cast<int64_t>(minor)};
  return fluid_gpu_ok;
}

FluidGpuResult device_count(int32_t* count) {
  int found = 0;
  const cudaError_t error = cudaGetDeviceCount(&found);
  *count = found;
  if (error == cudaErrorNoDevice) {
    cudaGetLastError();
    *count = 0;
    return fluid_gpu_ok;
  }
  return to_result(error, "counting GPUs");
}

FluidGpuResult architecture(int32_t device, int32_t* architecture) {
  int64_t major = 0, minor = 0;
  cudaError_t error = attribute(device, cudaDevAttrComputeCapabilityMajor, major);
  if (error == cudaSuccess) error = attribute(device, cudaDevAttrComputeCapabilityMinor, minor);
  *architecture = static_cast<int32_t>(10 * major + minor);
  return to_result(error, "querying a GPU's architecture");
}

FluidGpuResult describe(int32_t device, FluidGpuDescription* description) {
  *description = {};
  cudaError_t error = describe_device(device, *description);
  if (error == cudaSuccess) error = describe_memory(device, *description);
  return to_result(error, "describing a GPU");
}

FluidGpuResult open(int32_t device, FluidGpu** gpu) {
  int32_t sm = 0;
  if (const auto result = architecture(device, &sm); result != fluid_gpu_ok) return result;
  if (sm < FLUID_GPU_OLDEST_ARCHITECTURE) {
    return set_error(fluid_gpu_unusable, "sm_" + std::to_string(sm) + " is not supported");
  }
  const cudaError_t error = cudaSetDevice(device);  // creates the CUDA context
  if (error != cudaSuccess) return to_result(error, "opening a GPU");
  *gpu = new FluidGpu{.device = device, .architecture = sm};
  return fluid_gpu_ok;
}

FluidGpuResult close(FluidGpu* gpu) {
  const std::unique_ptr<FluidGpu> owned(gpu);
  return run_on(gpu, "closing a GPU", [&] {
    const cudaError_t waited = wait_for_streams(gpu);
    const cudaError_t released = gpu->gpu_resources.release_all();
    return waited != cudaSuccess ? waited : released;
  });
}

}  // namespace fluid::cuda
