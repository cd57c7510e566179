// Libraries that answer like a GPU library, but drive no GPU. Each build of this file is another
// machine:
//   DRIVER          the CUDA version of its driver; 0: no driver
//   DEVICES         number of GPUs; -1: the driver fails to report it
//   OLD             index of a GPU that is too old
//   TABLE_VERSION   version of its function table

#include <cstdio>

#include "executor/gpu_driver/backend_table.h"

namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

const char* error() { return "cudaErrorMadeUp, as asked"; }

FluidGpuResult versions(FluidGpuVersions* versions) {
  *versions = {.driver = DRIVER,
               .runtime = 13000,
               .blas = 130100,
               .dnn = 91900,
               .collectives = 22809,
               .linker = 13000};
  return fluid_gpu_ok;
}

FluidGpuResult device_count(int32_t* count) {
  if (DEVICES < 0) return fluid_gpu_unusable;
  *count = DEVICES;
  return fluid_gpu_ok;
}

FluidGpuResult architecture(int32_t device, int32_t* architecture) {
  *architecture = device == OLD ? 75 : 90;
  return fluid_gpu_ok;
}

/// cuda:0 and cuda:1 can be described; OLD may be one of them. cuda:2 is in use.
FluidGpuResult describe(int32_t device, FluidGpuDescription* gpu) {
  if (device > 1) return fluid_gpu_unusable;
  *gpu = {.major = device == OLD ? 7 : 9,
          .minor = device == OLD ? 5 : 0,
          .multiprocessors = 132,
          .memory = 80 * kGiB,
          .free_memory = 79 * kGiB};
  std::snprintf(gpu->name, sizeof gpu->name, "Made-up GPU %d", device);
  return fluid_gpu_ok;
}

constexpr FluidGpuTable kTable = {.version = TABLE_VERSION,
                                  .error = error,
                                  .versions = versions,
                                  .device_count = device_count,
                                  .architecture = architecture,
                                  .describe = describe};

}  // namespace

extern "C" const FluidGpuTable* fluid_gpu_table(uint32_t version) {
  return version == TABLE_VERSION ? &kTable : nullptr;
}
