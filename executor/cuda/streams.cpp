#include "executor/cuda/functions.h"
#include "executor/cuda/objects.h"

namespace fluid::cuda {

FluidGpuResult stream_create(FluidGpu* gpu, FluidGpuStream** stream) {
  return make_object<cudaStreamDestroy>(
      gpu, stream, "creating a stream", [&](cudaStream_t* handle) {
        const cudaError_t error = cudaStreamCreateWithFlags(handle, cudaStreamNonBlocking);
        const std::lock_guard lock(gpu->streams_mutex);
        if (error == cudaSuccess) gpu->streams.insert(*handle);
        return error;
      });
}

cudaError_t wait_for_streams(FluidGpu* gpu) {
  const std::lock_guard lock(gpu->streams_mutex);
  cudaError_t first = cudaSuccess;
  for (cudaStream_t stream : gpu->streams) {
    const cudaError_t waited = cudaStreamSynchronize(stream);
    if (first == cudaSuccess) first = waited;
  }
  return first;
}

FluidGpuResult stream_destroy(FluidGpuStream* stream) {
  FluidGpuStream* captured = stream;
  stream->gpu->capturing_stream.compare_exchange_strong(captured, nullptr);
  {
    const std::lock_guard lock(stream->gpu->streams_mutex);
    stream->gpu->streams.erase(stream->handle);
  }
  return release_resource(stream, "destroying a stream");
}

FluidGpuResult stream_synchronize(FluidGpuStream* stream) {
  return run_on(stream->gpu, "waiting for a stream",
                [&] { return cudaStreamSynchronize(stream->handle); });
}

FluidGpuResult copy(FluidGpuStream* stream, void* to, const void* from, int64_t bytes) {
  return run_on(stream->gpu, "copying", [&] {
    if (bytes < 0) return cudaErrorInvalidValue;
    if (bytes == 0) return cudaSuccess;
    return cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDefault, stream->handle);
  });
}

FluidGpuResult fill(FluidGpuStream* stream, void* to, uint8_t value, int64_t bytes) {
  return run_on(stream->gpu, "filling memory", [&] {
    if (bytes < 0) return cudaErrorInvalidValue;
    if (bytes == 0) return cudaSuccess;
    return cudaMemsetAsync(to, value, static_cast<size_t>(bytes), stream->handle);
  });
}

FluidGpuResult launch(FluidGpuStream* stream, const FluidGpuLaunch* launch) {
  return run_on(stream->gpu, "launching a kernel", [&] {
    const auto grid = static_cast<unsigned>(launch->grid);
    const auto block = static_cast<unsigned>(launch->block);
    if (grid != launch->grid || block != launch->block) return cudaErrorInvalidConfiguration;
    return cudaLaunchKernel(launch->kernel, dim3(grid), dim3(block),
                            const_cast<void**>(launch->arguments), 0, stream->handle);
  });
}

}  // namespace fluid::cuda
