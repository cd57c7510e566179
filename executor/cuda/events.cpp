#include "executor/cuda/functions.h"
#include "executor/cuda/objects.h"

namespace fluid::cuda {

/// Does not set cudaEventBlockingSync, so a host thread spins while waiting for an event. A blocked
/// thread would be woken by an interrupt, which can take longer than a short step.
FluidGpuResult event_create(FluidGpu* gpu, FluidGpuEventUse use, FluidGpuEvent** event) {
  const bool has_timing = use == fluid_gpu_event_timing;
  const unsigned flags = has_timing ? cudaEventDefault : cudaEventDisableTiming;
  const FluidGpuResult made = make_object<cudaEventDestroy>(
      gpu, event, "creating an event",
      [&](cudaEvent_t* handle) { return cudaEventCreateWithFlags(handle, flags); });
  if (made == fluid_gpu_ok) (*event)->has_timing = has_timing;
  return made;
}

FluidGpuResult event_destroy(FluidGpuEvent* event) {
  return release_resource(event, "destroying an event");
}

FluidGpuResult event_record(FluidGpuEvent* event, FluidGpuStream* stream) {
  return run_on(stream->gpu, "recording an event", [&] {
    auto capture = cudaStreamCaptureStatusNone;
    if (event->has_timing) {
      const cudaError_t error = cudaStreamIsCapturing(stream->handle, &capture);
      if (error != cudaSuccess) return error;
    }
    // CUDA rejects cudaEventRecordExternal when the stream is not being captured.
    const unsigned flags =
        capture == cudaStreamCaptureStatusNone ? cudaEventRecordDefault : cudaEventRecordExternal;
    return cudaEventRecordWithFlags(event->handle, stream->handle, flags);
  });
}

FluidGpuResult stream_wait(FluidGpuStream* stream, FluidGpuEvent* event) {
  return run_on(stream->gpu, "making a stream wait for an event", [&] {
    if (event->has_timing) return cudaErrorInvalidResourceHandle;
    return cudaStreamWaitEvent(stream->handle, event->handle, 0);
  });
}

FluidGpuResult event_query(FluidGpuEvent* event) {
  return run_on(event->gpu, "querying an event", [&] { return cudaEventQuery(event->handle); });
}

FluidGpuResult event_synchronize(FluidGpuEvent* event) {
  return run_on(event->gpu, "waiting for an event",
                [&] { return cudaEventSynchronize(event->handle); });
}

FluidGpuResult event_milliseconds(FluidGpuEvent* from, FluidGpuEvent* to, float* milliseconds) {
  return run_on(from->gpu, "timing between events", [&] {
    const cudaError_t error = cudaEventElapsedTime(milliseconds, from->handle, to->handle);
    return error == cudaErrorNotReady ? cudaErrorInvalidValue : error;
  });
}

}  // namespace fluid::cuda
