#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "executor/gpu/backend_table.h"
#include "tests/support/host_gpu_work.h"

namespace fluid::testing {

// What GPUs that the host stands in for compute together, as functions of the table. Processes find
// each other in a folder. As with a GPU's library, a call is queued only while its state is asked
// for: who asks too seldom has what follows run before it.
FluidGpuResult host_identity(FluidGpu* gpu, FluidGpuIdentity* identity);
FluidGpuResult host_meeting(FluidGpuMeeting* meeting);
FluidGpuResult host_communicator_create(FluidGpu* gpu, const FluidGpuMeeting* meeting, int32_t rank,
                                        int32_t ranks, FluidGpuCommunicator** communicator);
FluidGpuResult host_communicator_state(FluidGpuCommunicator* communicator);
FluidGpuResult host_communicator_abort(FluidGpuCommunicator* communicator);
FluidGpuResult host_communicator_destroy(FluidGpuCommunicator* communicator);
FluidGpuResult host_all_reduce(FluidGpuCommunicator* communicator, FluidGpuStream* stream,
                               void* data, int64_t count, FluidGpuNumber element);
FluidGpuResult host_reduce_scatter(FluidGpuCommunicator* communicator, FluidGpuStream* stream,
                                   void* data, int64_t count, int64_t share,
                                   FluidGpuNumber element);
FluidGpuResult host_all_gather(FluidGpuCommunicator* communicator, FluidGpuStream* stream,
                               void* data, int64_t count, int64_t share, FluidGpuNumber element);
FluidGpuResult host_broadcast(FluidGpuCommunicator* communicator, FluidGpuStream* stream,
                              void* data, int64_t bytes, int32_t root);

// What these need of host_gpu.cpp.

/// Runs a function of the table.
FluidGpuResult host_gpu_call(const char* name, FluidGpu* gpu, const std::function<void()>& call);
int host_device(const FluidGpu* gpu);
void count_host_object(int more);
void finish_host_work(FluidGpu* gpu);
/// Queues work on `data` that waits for other processes; see HostWork::others.
void queue_together(FluidGpuStream* stream, std::span<std::byte> data, std::function<void()> run,
                    std::function<bool(const HostWork*)> others);

}  // namespace fluid::testing
