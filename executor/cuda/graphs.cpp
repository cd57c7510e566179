#include "executor/cuda/functions.h"
#include "executor/cuda/objects.h"

namespace fluid::cuda {
namespace {

struct DestroyGraph {
  void operator()(cudaGraph_t graph) const { cudaGraphDestroy(graph); }
};
using Recorded = std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, DestroyGraph>;

}  // namespace

FluidGpuResult capture_begin(FluidGpuStream* stream) {
  FluidGpu* gpu = stream->gpu;
  return run_on(gpu, "beginning a capture", [&] {
    FluidGpuStream* none = nullptr;
    if (!gpu->capturing_stream.compare_exchange_strong(none, stream)) return cudaErrorIllegalState;
    gpu->capture_invalidated = false;
    const cudaError_t error =
        cudaStreamBeginCapture(stream->handle, cudaStreamCaptureModeThreadLocal);
    if (error != cudaSuccess) gpu->capturing_stream = nullptr;
    return error;
  });
}

FluidGpuResult capture_end(FluidGpuStream* stream, FluidGpuGraph** graph) {
  FluidGpu* gpu = stream->gpu;
  cudaGraph_t recorded = nullptr;
  const FluidGpuResult ended = run_on(gpu, "ending a capture", [&] {
    FluidGpuStream* begun = stream;
    if (!gpu->capturing_stream.compare_exchange_strong(begun, nullptr))
      return cudaErrorIllegalState;
    const cudaError_t error = cudaStreamEndCapture(stream->handle, &recorded);
    if (error == cudaSuccess && gpu->capture_invalidated) return cudaErrorStreamCaptureInvalidated;
    return error;
  });
  const Recorded owned(recorded);
  if (ended != fluid_gpu_ok) return ended;
  return make_object<cudaGraphExecDestroy>(
      gpu, graph, "creating a graph", [&](cudaGraphExec_t* handle) {
        const cudaError_t error = cudaGraphInstantiate(handle, recorded, 0);
        if (error != cudaSuccess) return error;
        // Uploads the graph now, because an upload by the first launch would allocate memory within
        // a step.
        const cudaError_t uploaded = cudaGraphUpload(*handle, stream->handle);
        if (uploaded != cudaSuccess) cudaGraphExecDestroy(*handle);
        return uploaded;
      });
}

FluidGpuResult graph_launch(FluidGpuGraph* graph, FluidGpuStream* stream) {
  return run_on(stream->gpu, "launching a graph",
                [&] { return cudaGraphLaunch(graph->handle, stream->handle); });
}

FluidGpuResult graph_destroy(FluidGpuGraph* graph) {
  return release_resource(graph, "destroying a graph");
}

}  // namespace fluid::cuda
