#pragma once

#include <string>
#include <vector>

#include "executor/gpu/backend_table.h"

namespace fluid {

/// What to do where a GPU has no memory for its context.
inline constexpr const char* kNoContextAdvice =
    "its context needs memory: end what else uses the GPU, or take another by "
    "CUDA_VISIBLE_DEVICES";

/// What there is to run on GPUs with. That there is nothing is no error.
struct GpuBackend {
  const FluidGpuTable* table = nullptr;  ///< of the library; null where none could be loaded
  FluidGpuVersions versions{};
  int devices = 0;
  std::string absence;  ///< why there are no devices, in one line; empty where there are
  bool hidden = false;  ///< CUDA_VISIBLE_DEVICES is set so that none is left on purpose
};

/// The GPUs of the library `path`, which stays loaded. An empty path looks for libfluid_cuda.so
/// beside the program, in lib there and beside its folder, and where the loader looks.
GpuBackend find_gpus(const std::string& path);

/// Whether it is worth the time to look for GPUs: the system shows a driver, or a library is named.
bool may_have_gpus();

/// What $FLUID_GPU_LIBRARY, or the search, finds, once a process.
const GpuBackend& gpu_backend();

/// The numbers of the GPUs that programs can run on. Makes no context: it takes no memory of
/// theirs. Throws DeviceError when one does not answer.
std::vector<int> supported_gpus(const GpuBackend& backend);

/// One GPU, which need not be supported. Throws UserError when there is no such number, DeviceError
/// when there are no GPUs or this one does not answer, OutOfMemory when it is full. Makes the GPU's
/// context: it takes memory.
FluidGpuDescription describe_gpu(const GpuBackend& backend, int device);

/// Why programs cannot run on such a GPU, or "".
std::string unsupported(const FluidGpuDescription& gpu);

/// The table to open GPU `device` with. Throws as describe_gpu does, and DeviceError when the GPU
/// is not supported.
const FluidGpuTable& usable_gpu(const GpuBackend& backend, int device);

/// "13.0" of CUDA's 13000.
std::string cuda_version(int64_t version);

}  // namespace fluid
