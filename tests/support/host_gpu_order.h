#pragma once

#include "executor/gpu_driver/backend_table.h"

namespace fluid::testing {

// Events, captures and graphs of GPUs that the host stands in for, as functions of the table.
FluidGpuResult host_event_create(FluidGpu* gpu, FluidGpuEventUse use, FluidGpuEvent** event);
FluidGpuResult host_event_destroy(FluidGpuEvent* event);
FluidGpuResult host_event_record(FluidGpuEvent* event, FluidGpuStream* stream);
FluidGpuResult host_stream_wait(FluidGpuStream* stream, FluidGpuEvent* event);
FluidGpuResult host_event_query(FluidGpuEvent* event);
FluidGpuResult host_event_synchronize(FluidGpuEvent* event);
FluidGpuResult host_event_milliseconds(FluidGpuEvent* from, FluidGpuEvent* to, float* milliseconds);
FluidGpuResult host_capture_begin(FluidGpuStream* stream);
FluidGpuResult host_capture_end(FluidGpuStream* stream, FluidGpuGraph** graph);
FluidGpuResult host_graph_launch(FluidGpuGraph* graph, FluidGpuStream* stream);
FluidGpuResult host_graph_destroy(FluidGpuGraph* graph);

}  // namespace fluid::testing
