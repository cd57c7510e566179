#include "executor/cuda/functions.h"
#include "executor/cuda/objects.h"

namespace fluid::cuda {

FluidGpuResult stream_create(FluidGpu* gpu, FluidGpuStream** stream) {
  return make_object<cudaStreamDestroy>(gpu, stream, "making a stream", [](cudaStream_t* handle) {
    return cudaStreamCreateWithFlags(handle, cudaStreamNonBlocking);
  });
}

FluidGpuResult stream_destroy(FluidGpuStream* stream) {
  FluidGpuStream* captured = stream;
  stream->gpu->captured.compare_exchange_strong(captured, nullptr);
  return give_back(stream, "destroying a stream");
}

FluidGpuResult stream_synchronize(FluidGpuStream* stream) {
  return on(stream->gpu, "waiting for a stream",
            [&] { return cudaStreamSynchronize(stream->handle); });
}

FluidGpuResult copy(FluidGpuStream* stream, void* to, const void* from, int64_t bytes) {
  return on(stream->gpu, "copying", [&] {
    if (bytes < 0) return cudaErrorInvalidValue;
    if (bytes == 0) return cudaSuccess;
    return cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDefault, stream->handle);
  });
}

FluidGpuResult fill(FluidGpuStream* stream, void* to, uint8_t value, int64_t bytes) {
  return on(stream->gpu, "filling memory", [&] {
    if (bytes < 0) return cudaErrorInvalidValue;
    if (bytes == 0) return cudaSuccess;
    return cudaMemsetAsync(to, value, static_cast<size_t>(bytes), stream->handle);
  });
}

FluidGpuResult launch(FluidGpuStream* stream, const FluidGpuLaunch* launch) {
  return on(stream->gpu, "launching a kernel", [&] {
    const auto groups = static_cast<unsigned>(launch->groups);
    const auto threads = static_cast<unsigned>(launch->threads);
    if (groups != launch->groups || threads != launch->threads)
      return cudaErrorInvalidConfiguration;
    return cudaLaunchKernel(launch->kernel, dim3(groups), dim3(threads),
                            const_cast<void**>(launch->arguments), 0, stream->handle);
  });
}

}  // namespace fluid::cuda
