#pragma once

// Definitions of the opaque types of FluidGpuTable.

#include <cublasLt.h>
#include <cudnn.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <set>

#include "executor/cuda/gpu_resources.h"
#include "executor/cuda/result.h"

struct FluidGpu {
  int device = 0;
  int architecture = 0;  ///< 10 times the compute capability, such as 90 for sm_90
  std::atomic<FluidGpuStream*> capturing_stream = nullptr;  ///< stream of the capture in progress
  std::atomic<bool> capture_invalidated = false;
  std::mutex blas_mutex = {};
  cublasLtHandle_t blas = nullptr;  ///< cuBLASLt handle, created when first needed
  std::mutex dnn_mutex = {};        ///< protects `dnn` and its current stream
  cudnnHandle_t dnn = nullptr;      ///< cuDNN handle, created when first needed
  std::mutex streams_mutex = {};
  std::set<cudaStream_t> streams = {};  ///< all streams of the GPU
  fluid::cuda::GpuResources gpu_resources = {};
};

struct FluidGpuStream {
  FluidGpu* gpu = nullptr;
  cudaStream_t handle = nullptr;
};

struct FluidGpuEvent {
  FluidGpu* gpu = nullptr;
  cudaEvent_t handle = nullptr;
  bool has_timing = false;  ///< whether the event records the time
};

struct FluidGpuGraph {
  FluidGpu* gpu = nullptr;
  cudaGraphExec_t handle = nullptr;
};

struct FluidGpuModule {
  FluidGpu* gpu = nullptr;
  cudaLibrary_t handle = nullptr;
};

namespace fluid::cuda {

/// Runs `call` with the GPU as the current device. `action`: describes the call in error messages.
/// If the result is fluid_gpu_invalid_usage, invalidates the stream capture in progress.
template <class Call>
FluidGpuResult run_on(FluidGpu* gpu, const char* action, Call&& call) {
  cudaError_t error = cudaSetDevice(gpu->device);
  if (error == cudaSuccess) error = call();
  const FluidGpuResult result = to_result(error, action);
  if (result == fluid_gpu_invalid_usage && gpu->capturing_stream != nullptr)
    gpu->capture_invalidated = true;
  return result;
}

/// Like run_on(). But while any thread captures a stream of this GPU, returns
/// fluid_gpu_invalid_usage without calling `call`.
template <class Call>
FluidGpuResult run_outside_capture(FluidGpu* gpu, const char* action, Call&& call) {
  return run_on(gpu, action, [&] {
    return gpu->capturing_stream == nullptr ? call() : cudaErrorStreamCaptureUnsupported;
  });
}

/// Synchronizes all streams of the GPU. cudaDeviceSynchronize() would invalidate a stream capture
/// of another thread.
cudaError_t wait_for_streams(FluidGpu* gpu);

template <class T, auto kDestroy>
cudaError_t destroy_object(void* object) {
  const std::unique_ptr<T> owned(static_cast<T*>(object));
  return kDestroy(owned->handle);
}

/// Creates an object, and registers it as a resource of the GPU. `make(&handle)` creates the CUDA
/// handle that the object owns. Releasing the resource destroys the handle by calling kDestroy.
template <auto kDestroy, class T, class Make>
FluidGpuResult make_object(FluidGpu* gpu, T** object, const char* action, Make&& make) {
  return run_on(gpu, action, [&] {
    auto made = std::make_unique<T>(T{.gpu = gpu});
    if (const cudaError_t error = make(&made->handle); error != cudaSuccess) return error;
    *object = made.release();
    gpu->gpu_resources.add(*object, destroy_object<T, kDestroy>);
    return cudaSuccess;
  });
}

template <class T>
FluidGpuResult release_resource(T* object, const char* action) {
  FluidGpu* gpu = object->gpu;
  return run_on(gpu, action, [&] { return gpu->gpu_resources.release_resource(object); });
}

}  // namespace fluid::cuda
