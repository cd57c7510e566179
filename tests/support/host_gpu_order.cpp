#include "tests/support/host_gpu_order.h"

#include <algorithm>

#include "tests/support/host_gpu_state.h"

using namespace fluid::testing;

struct FluidGpuEvent : HostEvent {
  FluidGpu* gpu = nullptr;
  int looked = 0;  ///< how often, since it was noted last
};

struct FluidGpuGraph {
  FluidGpu* gpu = nullptr;
  HostFrontier work;
};

namespace fluid::testing {
namespace {

void require_not_recorded(const FluidGpuEvent* event) {
  if (!event->capture) return;
  event->capture->lost = true;
  throw misused("an event is looked at that was noted in a capture");
}

}  // namespace

FluidGpuResult host_event_create(FluidGpu* gpu, FluidGpuEventUse use, FluidGpuEvent** event) {
  return host_gpu_call("event_create", gpu, [&] {
    create(event);
    (*event)->gpu = gpu;
    (*event)->times = use == fluid_gpu_event_timing;
  });
}

FluidGpuResult host_event_destroy(FluidGpuEvent* event) {
  return host_gpu_call("event_destroy", nullptr, [&] { destroy(event); });
}

FluidGpuResult host_event_record(FluidGpuEvent* event, FluidGpuStream* stream) {
  return host_gpu_call("event_record", stream->gpu, [&] {
    queue(stream, {}, [] {});  // its end is when the event happened
    stream->gpu->scheduler.note(*event, *stream);
    event->looked = 0;
  });
}

FluidGpuResult host_stream_wait(FluidGpuStream* stream, FluidGpuEvent* event) {
  return host_gpu_call("stream_wait", stream->gpu, [&] {
    if (event->times) {
      check_not_capturing(stream->gpu, "an event that tells the time is waited for");
      throw misused("a stream waits for an event that tells the time");
    }
    stream->gpu->scheduler.wait(*stream, *event);
  });
}

FluidGpuResult host_event_query(FluidGpuEvent* event) {
  bool done = false;
  const FluidGpuResult result = host_gpu_call("event_query", event->gpu, [&] {
    require_not_recorded(event);
    if (event->looked++ > 0) event->gpu->scheduler.look();
    done = HostScheduler::is_done(event->stands_for);
  });
  return result == fluid_gpu_ok && !done ? fluid_gpu_not_ready : result;
}

FluidGpuResult host_event_synchronize(FluidGpuEvent* event) {
  return host_gpu_call("event_synchronize", event->gpu, [&] {
    require_not_recorded(event);
    event->gpu->scheduler.run_until_done(event->stands_for);
  });
}

FluidGpuResult host_event_milliseconds(FluidGpuEvent* from, FluidGpuEvent* to,
                                       float* milliseconds) {
  return host_gpu_call("event_milliseconds", from->gpu, [&] {
    for (const FluidGpuEvent* event : {from, to}) {
      if (!event->times) throw misused("a time is asked of an event that tells none");
      if (!event->noted || event->capture || !HostScheduler::is_done(event->stands_for)) {
        throw misused("a time is asked for between events that are not done");
      }
    }
    const int64_t work = to->stands_for.back()->done_at - from->stands_for.back()->done_at;
    *milliseconds = static_cast<float>(work) * host_gpu_state().options.work_ms;
  });
}

FluidGpuResult host_capture_begin(FluidGpuStream* stream) {
  return host_gpu_call("capture_begin", stream->gpu, [&] {
    stream->gpu->scheduler.begin_capture(*stream, stream->gpu->streams);
  });
}

FluidGpuResult host_capture_end(FluidGpuStream* stream, FluidGpuGraph** graph) {
  FluidGpu* gpu = stream->gpu;
  HostFrontier work;
  const FluidGpuResult ended = host_gpu_call(
      "capture_end", gpu, [&] { work = gpu->scheduler.end_capture(*stream, gpu->streams); });
  if (ended != fluid_gpu_ok) {
    try {
      gpu->scheduler.end_capture(*stream, gpu->streams);  // it is over, whatever its end says
    } catch (const HostError&) {
    }
    return ended;
  }
  return host_gpu_call("graph_create", gpu, [&] {
    create(graph);
    **graph = {gpu, std::move(work)};
    gpu->graphs.push_back(&(*graph)->work);
    size_t& most = host_gpu_state().most_graphs;
    most = std::max(most, gpu->graphs.size());
  });
}

FluidGpuResult host_graph_launch(FluidGpuGraph* graph, FluidGpuStream* stream) {
  FluidGpu* gpu = stream->gpu;
  return host_gpu_call("graph_launch", gpu, [&] {
    if (!HostScheduler::is_done(gpu->graph)) ++host_gpu_state().overlaps;
    gpu->scheduler.launch(graph->work, *stream);
    gpu->graph = stream->queued;
  });
}

FluidGpuResult host_graph_destroy(FluidGpuGraph* graph) {
  return host_gpu_call("graph_destroy", nullptr, [&] {
    std::erase(graph->gpu->graphs, &graph->work);
    destroy(graph);
  });
}

}  // namespace fluid::testing
