#include "executor/places/device_of.h"

#include "executor/cpu/cpu_device.h"
#include "executor/device/forks.h"
#include "executor/gpu/gpu_device.h"
#include "executor/gpu_driver/backend.h"
#include "executor/host/parallel.h"

namespace fluid {

std::unique_ptr<Device> device_of(Place place, const ExecutorOptions& options,
                                  Communicator* communicator) {
  if (place.kind == Place::Kind::cuda) {
    const FluidGpuTable& table = require_supported_gpu(gpu_backend(), place.index);
    mark_fork_unsafe();
    return gpu_device(table,
                      {.device = place.index,
                       .host_threads = thread_count(options.threads),
                       .cache_dir = options.cache_dir,
                       .libraries = {options.gpu.workspace, options.gpu.tf32},
                       .tune = options.gpu.tune,
                       .tuning_record = options.tuning_record,
                       .peers = {.world = options.distributed.world,
                                 .host_communicator = communicator,
                                 .timeout = options.distributed.comm_timeout,
                                 .rendezvous_timeout = options.distributed.rendezvous_timeout}});
  }
  return cpu_device({.threads = options.threads,
                     .cache_dir = options.cache_dir,
                     .communicator = communicator,
                     .tune = options.cpu.tune,
                     .tuning_record = options.tuning_record});
}

}  // namespace fluid
