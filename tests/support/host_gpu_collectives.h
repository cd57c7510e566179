#pragma once

#include "executor/gpu_driver/backend_table.h"

namespace fluid::testing {

// Collective functions of the GPUs that the host stands in for. Processes find each other in a
// folder. As with NCCL, a call is queued only while its state is polled: without polling, later
// work runs before it.
FluidGpuResult host_identity(FluidGpu* gpu, FluidGpuUuid* identity);
FluidGpuResult host_unique_id(FluidGpuUniqueId* meeting);
FluidGpuResult host_communicator_create(FluidGpu* gpu, const FluidGpuUniqueId* meeting,
                                        int32_t rank, int32_t ranks,
                                        FluidGpuCommunicator** communicator);
FluidGpuResult host_communicator_state(FluidGpuCommunicator* communicator);
FluidGpuResult host_communicator_abort(FluidGpuCommunicator* communicator);
FluidGpuResult host_communicator_destroy(FluidGpuCommunicator* communicator);
FluidGpuResult host_all_reduce(FluidGpuCommunicator* communicator, FluidGpuStream* stream,
                               void* data, int64_t count, FluidGpuDtype element);
FluidGpuResult host_reduce_scatter(FluidGpuCommunicator* communicator, FluidGpuStream* stream,
                                   void* data, int64_t count, int64_t share, FluidGpuDtype element);
FluidGpuResult host_all_gather(FluidGpuCommunicator* communicator, FluidGpuStream* stream,
                               void* data, int64_t count, int64_t share, FluidGpuDtype element);
FluidGpuResult host_broadcast(FluidGpuCommunicator* communicator, FluidGpuStream* stream,
                              void* data, int64_t bytes, int32_t root);

}  // namespace fluid::testing
