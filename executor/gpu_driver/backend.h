#pragma once

#include <string>
#include <vector>

#include "executor/gpu_driver/backend_table.h"

namespace fluid {

/// The advice when a GPU has too little memory for a CUDA context.
inline constexpr const char* kNoContextAdvice =
    "its context needs memory: free GPU memory, or choose another GPU by CUDA_VISIBLE_DEVICES";

/// The GPU library and its devices. A machine without GPUs is not an error.
struct GpuBackend {
  const FluidGpuTable* table = nullptr;  ///< of the library; null if none could be loaded
  FluidGpuVersions versions{};
  int devices = 0;
  std::string absence;  ///< why there are no devices, in one line; else empty
  bool hidden = false;  ///< CUDA_VISIBLE_DEVICES hides all devices on purpose
};

/// Loads the GPU library `path`, which stays loaded, and counts its devices. An empty path searches
/// for libfluid_cuda.so next to the program, in ./lib and ../lib from there, and on dlopen's path.
GpuBackend find_gpus(const std::string& path);

/// Whether a driver is visible or $FLUID_GPU_LIBRARY names a library. Otherwise find_gpus() would
/// waste time.
bool may_have_gpus();

/// Calls find_gpus() with $FLUID_GPU_LIBRARY, and keeps the result for the process.
const GpuBackend& gpu_backend();

/// Indices of the GPUs with a supported architecture. Creates no context, so it takes no GPU
/// memory. Throws DeviceError when a GPU does not respond.
std::vector<int> supported_gpus(const GpuBackend& backend);

/// Describes a GPU, supported or not. Throws UserError for an invalid index, DeviceError when there
/// is no GPU or it does not respond, OutOfMemory when it is full. Creates the GPU's context, which
/// takes GPU memory.
FluidGpuDescription describe_gpu(const GpuBackend& backend, int device);

/// Why this GPU is not supported, or "".
std::string unsupported(const FluidGpuDescription& gpu);

/// The table to open GPU `device` with. Throws as describe_gpu() does, and DeviceError when the GPU
/// is not supported.
const FluidGpuTable& usable_gpu(const GpuBackend& backend, int device);

/// CUDA's version 13000 as "13.0".
std::string cuda_version(int64_t version);

}  // namespace fluid
