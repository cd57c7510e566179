#pragma once

#include <string>
#include <vector>

#include "executor/gpu_driver/backend_table.h"

namespace fluid {

/// Advice in the error message for a GPU with too little free memory for a CUDA context.
inline constexpr const char* kNoContextAdvice =
    "its context needs memory: free GPU memory, or choose another GPU by CUDA_VISIBLE_DEVICES";

/// The loaded GPU library and the number of GPUs that it finds, or the reason why there are no
/// GPUs.
struct GpuBackend {
  /// The library's functions; null if no library could be loaded.
  const FluidGpuTable* table = nullptr;
  FluidGpuVersions versions{};
  int devices = 0;
  std::string unavailable_reason;  ///< why there are no GPUs, in one line; empty if there are GPUs
  bool hidden = false;             ///< whether CUDA_VISIBLE_DEVICES explicitly hides all GPUs
};

/// Loads the GPU library `path`, and counts the GPUs. The library stays loaded. If `path` is empty,
/// searches for libfluid_cuda.so beside libfluid.so, beside the program, in the program's lib and
/// ../lib, and on dlopen's search path.
GpuBackend find_gpus(const std::string& path);

/// Whether GPUs may exist: a GPU driver is visible, or $FLUID_GPU_LIBRARY names a library. Cheaper
/// than find_gpus().
bool may_have_gpus();

/// Returns the result of find_gpus() for the path in $FLUID_GPU_LIBRARY. Calls find_gpus() once per
/// process.
const GpuBackend& gpu_backend();

/// Indices of the GPUs with a supported architecture. Creates no CUDA context, and so uses no GPU
/// memory. Throws DeviceError when a GPU does not respond.
std::vector<int> supported_gpu_indices(const GpuBackend& backend);

/// Returns the properties of a GPU, supported or not. Creates a CUDA context, which uses GPU
/// memory. Throws UserError for an invalid index, and OutOfMemory when the GPU's memory is full.
/// Throws DeviceError when there is no GPU, or when the GPU does not respond.
FluidGpuDescription describe_gpu(const GpuBackend& backend, int device);

/// Returns why a GPU is not supported, or "" if it is supported.
std::string unsupported_reason(const FluidGpuDescription& gpu);

/// Returns the function table of the GPU library. Throws as describe_gpu() does, and throws
/// DeviceError when GPU `device` is not supported.
const FluidGpuTable& require_supported_gpu(const GpuBackend& backend, int device);

/// Formats a CUDA version number, such as 13000, as "13.0".
std::string cuda_version(int64_t version);

}  // namespace fluid
