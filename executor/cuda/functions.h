#pragma once

// The functions of FluidGpuTable, which is documented in executor/gpu_driver/backend_table.h.

#include "executor/gpu_driver/backend_table.h"

namespace fluid::cuda {

FluidGpuResult versions(FluidGpuVersions* versions);
FluidGpuResult device_count(int32_t* count);
FluidGpuResult architecture(int32_t device, int32_t* architecture);
FluidGpuResult describe(int32_t device, FluidGpuDescription* description);
FluidGpuResult open(int32_t device, FluidGpu** gpu);
FluidGpuResult close(FluidGpu* gpu);

FluidGpuResult allocate(FluidGpu* gpu, int64_t bytes, void** address);
FluidGpuResult release(FluidGpu* gpu, void* address);
FluidGpuResult allocate_host(FluidGpu* gpu, int64_t bytes, void** address);
FluidGpuResult release_host(FluidGpu* gpu, void* address);
FluidGpuResult memory_info(FluidGpu* gpu, int64_t* free_bytes, int64_t* total_bytes);

FluidGpuResult stream_create(FluidGpu* gpu, FluidGpuStream** stream);
FluidGpuResult stream_destroy(FluidGpuStream* stream);
FluidGpuResult stream_synchronize(FluidGpuStream* stream);
FluidGpuResult copy(FluidGpuStream* stream, void* to, const void* from, int64_t bytes);
FluidGpuResult fill(FluidGpuStream* stream, void* to, uint8_t value, int64_t bytes);
FluidGpuResult launch(FluidGpuStream* stream, const FluidGpuLaunch* launch);

FluidGpuResult event_create(FluidGpu* gpu, FluidGpuEventUse use, FluidGpuEvent** event);
FluidGpuResult event_destroy(FluidGpuEvent* event);
FluidGpuResult event_record(FluidGpuEvent* event, FluidGpuStream* stream);
FluidGpuResult stream_wait(FluidGpuStream* stream, FluidGpuEvent* event);
FluidGpuResult event_query(FluidGpuEvent* event);
FluidGpuResult event_synchronize(FluidGpuEvent* event);
FluidGpuResult event_milliseconds(FluidGpuEvent* from, FluidGpuEvent* to, float* milliseconds);

FluidGpuResult capture_begin(FluidGpuStream* stream);
FluidGpuResult capture_end(FluidGpuStream* stream, FluidGpuGraph** graph);
FluidGpuResult graph_launch(FluidGpuGraph* graph, FluidGpuStream* stream);
FluidGpuResult graph_destroy(FluidGpuGraph* graph);

FluidGpuResult matmul_algorithms(FluidGpu* gpu, const FluidGpuMatmul* matmul, int64_t workspace,
                                 FluidGpuAlgorithm* algorithms, int32_t* count);
FluidGpuResult matmul_plan_create(FluidGpu* gpu, const FluidGpuMatmul* matmul,
                                  const FluidGpuAlgorithm* algorithm, FluidGpuPlan** gpu_plan);
FluidGpuResult convolution_algorithms(FluidGpu* gpu, const FluidGpuConvolution* convolution,
                                      int64_t workspace, FluidGpuAlgorithm* algorithms,
                                      int32_t* count);
FluidGpuResult convolution_plan_create(FluidGpu* gpu, const FluidGpuConvolution* convolution,
                                       const FluidGpuAlgorithm* algorithm, FluidGpuPlan** gpu_plan);
FluidGpuResult plan_destroy(FluidGpuPlan* gpu_plan);
FluidGpuResult plan_execute(FluidGpuStream* stream, FluidGpuPlan* gpu_plan,
                            const FluidGpuOperands* operands);

FluidGpuResult assemble(FluidGpu* gpu, const char* ptx, size_t length, void** cubin,
                        size_t* cubin_bytes);
/// Compiles PTX to a cubin for sm_<architecture>, as assemble() does. Needs no GPU.
FluidGpuResult assemble_for(int architecture, const char* ptx, size_t length, void** cubin,
                            size_t* cubin_bytes);
void free_cubin(void* cubin);
FluidGpuResult module_load(FluidGpu* gpu, const void* image, size_t bytes, FluidGpuModule** module);
FluidGpuResult module_unload(FluidGpuModule* module);
FluidGpuResult module_kernel(FluidGpuModule* module, const char* name, FluidGpuKernel** kernel);

FluidGpuResult uuid(FluidGpu* gpu, FluidGpuUuid* uuid);
FluidGpuResult unique_id(FluidGpuUniqueId* unique_id);
FluidGpuResult communicator_create(FluidGpu* gpu, const FluidGpuUniqueId* unique_id, int32_t rank,
                                   int32_t ranks, FluidGpuCommunicator** communicator);
FluidGpuResult communicator_state(FluidGpuCommunicator* communicator);
FluidGpuResult communicator_abort(FluidGpuCommunicator* communicator);
FluidGpuResult communicator_destroy(FluidGpuCommunicator* communicator);
FluidGpuResult all_reduce(FluidGpuCommunicator* communicator, FluidGpuStream* stream, void* data,
                          int64_t count, FluidGpuDtype dtype);
FluidGpuResult reduce_scatter(FluidGpuCommunicator* communicator, FluidGpuStream* stream,
                              void* data, int64_t count, int64_t shard_size, FluidGpuDtype dtype);
FluidGpuResult all_gather(FluidGpuCommunicator* communicator, FluidGpuStream* stream, void* data,
                          int64_t count, int64_t shard_size, FluidGpuDtype dtype);
FluidGpuResult broadcast(FluidGpuCommunicator* communicator, FluidGpuStream* stream, void* data,
                         int64_t bytes, int32_t root);

}  // namespace fluid::cuda
