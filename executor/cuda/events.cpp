#include "executor/cuda/functions.h"
#include "executor/cuda/objects.h"

namespace fluid::cuda {

FluidGpuResult event_create(FluidGpu* gpu, FluidGpuEvent** event) {
  return make_object<cudaEventDestroy>(gpu, event, "making an event",
                                       [](cudaEvent_t* handle) { return cudaEventCreate(handle); });
}

FluidGpuResult event_destroy(FluidGpuEvent* event) {
  return give_back(event, "destroying an event");
}

FluidGpuResult event_record(FluidGpuEvent* event, FluidGpuStream* stream) {
  return on(stream->gpu, "recording an event",
            [&] { return cudaEventRecord(event->handle, stream->handle); });
}

FluidGpuResult stream_wait(FluidGpuStream* stream, FluidGpuEvent* event) {
  return on(stream->gpu, "letting a stream wait for an event",
            [&] { return cudaStreamWaitEvent(stream->handle, event->handle, 0); });
}

FluidGpuResult event_query(FluidGpuEvent* event) {
  return on(event->gpu, "asking for an event", [&] { return cudaEventQuery(event->handle); });
}

FluidGpuResult event_synchronize(FluidGpuEvent* event) {
  return on(event->gpu, "waiting for an event",
            [&] { return cudaEventSynchronize(event->handle); });
}

FluidGpuResult event_milliseconds(FluidGpuEvent* from, FluidGpuEvent* to, float* milliseconds) {
  return on(from->gpu, "timing between events", [&] {
    const cudaError_t error = cudaEventElapsedTime(milliseconds, from->handle, to->handle);
    return error == cudaErrorNotReady ? cudaErrorInvalidValue : error;
  });
}

}  // namespace fluid::cuda
