#include "executor/cuda/functions.h"
#include "executor/cuda/result.h"

namespace fluid::cuda {
namespace {

constexpr FluidGpuTable kTable = {
    .version = FLUID_GPU_TABLE_VERSION,
    .error = last_error,
    .versions = versions,
    .device_count = device_count,
    .architecture = architecture,
    .describe = describe,
    .open = open,
    .close = close,
    .allocate = allocate,
    .release = release,
    .allocate_host = allocate_host,
    .release_host = release_host,
    .memory_info = memory_info,
    .stream_create = stream_create,
    .stream_destroy = stream_destroy,
    .stream_synchronize = stream_synchronize,
    .copy = copy,
    .fill = fill,
    .launch = launch,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .stream_wait = stream_wait,
    .event_query = event_query,
    .event_synchronize = event_synchronize,
    .event_milliseconds = event_milliseconds,
    .capture_begin = capture_begin,
    .capture_end = capture_end,
    .graph_launch = graph_launch,
    .graph_destroy = graph_destroy,
    .assemble = assemble,
    .free_cubin = free_cubin,
    .module_load = module_load,
    .module_unload = module_unload,
    .module_kernel = module_kernel,
    .matmul_algorithms = matmul_algorithms,
    .matmul_plan_create = matmul_plan_create,
    .convolution_algorithms = convolution_algorithms,
    .convolution_plan_create = convolution_plan_create,
    .plan_destroy = plan_destroy,
    .plan_execute = plan_execute,
    .uuid = uuid,
    .unique_id = unique_id,
    .communicator_create = communicator_create,
    .communicator_state = communicator_state,
    .communicator_abort = communicator_abort,
    .communicator_destroy = communicator_destroy,
    .all_reduce = all_reduce,
    .reduce_scatter = reduce_scatter,
    .all_gather = all_gather,
    .broadcast = broadcast,
};

}  // namespace
}  // namespace fluid::cuda

extern "C" [[gnu::visibility("default")]] const FluidGpuTable* fluid_gpu_table(uint32_t version) {
  return version == FLUID_GPU_TABLE_VERSION ? &fluid::cuda::kTable : nullptr;
}
