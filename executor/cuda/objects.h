#pragma once

// The types behind the table's opaque pointers.

#include <cublasLt.h>
#include <cudnn.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <set>

#include "executor/cuda/answer.h"
#include "executor/cuda/gpu_resources.h"

struct FluidGpu {
  int device = 0;
  int architecture = 0;                             ///< 90 means sm_90
  std::atomic<FluidGpuStream*> captured = nullptr;  ///< origin of the capture in progress
  std::atomic<bool> capture_lost = false;
  std::mutex blas_mutex = {};
  cublasLtHandle_t blas = nullptr;  ///< created when first needed
  std::mutex dnn_mutex = {};        ///< held while `dnn` is used
  cudnnHandle_t dnn = nullptr;      ///< created when first needed
  std::mutex streams_mutex = {};
  std::set<cudaStream_t> streams = {};  ///< all existing streams
  fluid::cuda::GpuResources gpu_resources = {};
};

struct FluidGpuStream {
  FluidGpu* gpu = nullptr;
  cudaStream_t handle = nullptr;
};

struct FluidGpuEvent {
  FluidGpu* gpu = nullptr;
  cudaEvent_t handle = nullptr;
  bool times = false;  ///< measures time
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

/// Makes `call` with the GPU as the current device. A result of misused invalidates a capture in
/// progress.
template <class Call>
FluidGpuResult on(FluidGpu* gpu, const char* doing, Call&& call) {
  cudaError_t error = cudaSetDevice(gpu->device);
  if (error == cudaSuccess) error = call();
  const FluidGpuResult result = answer(error, doing);
  if (result == fluid_gpu_misused && gpu->captured != nullptr) gpu->capture_lost = true;
  return result;
}

/// As on(), but returns misused while any thread captures on this GPU.
template <class Call>
FluidGpuResult outside_captures(FluidGpu* gpu, const char* doing, Call&& call) {
  return on(gpu, doing,
            [&] { return gpu->captured == nullptr ? call() : cudaErrorStreamCaptureUnsupported; });
}

/// Synchronises all of the GPU's streams. Synchronising the device would break a capture on another
/// thread.
cudaError_t wait_for_streams(FluidGpu* gpu);

template <class T, auto kDestroy>
cudaError_t destroy_object(void* object) {
  const std::unique_ptr<T> owned(static_cast<T*>(object));
  return kDestroy(owned->handle);
}

/// Wraps the handle that `make(&handle)` creates. kDestroy will destroy it.
template <auto kDestroy, class T, class Make>
FluidGpuResult make_object(FluidGpu* gpu, T** object, const char* doing, Make&& make) {
  return on(gpu, doing, [&] {
    auto made = std::make_unique<T>(T{.gpu = gpu});
    if (const cudaError_t error = make(&made->handle); error != cudaSuccess) return error;
    *object = made.release();
    gpu->gpu_resources.add(*object, destroy_object<T, kDestroy>);
    return cudaSuccess;
  });
}

template <class T>
FluidGpuResult release_resource(T* object, const char* doing) {
  FluidGpu* gpu = object->gpu;
  return on(gpu, doing, [&] { return gpu->gpu_resources.release_resource(object); });
}

}  // namespace fluid::cuda
