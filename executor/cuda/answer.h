#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "executor/gpu_driver/backend_table.h"

namespace fluid::cuda {

/// Converts a CUDA error of the action `doing` to a result of the table. Stores a failure's message
/// for last_error() and clears CUDA's error state. Not-ready stores no message, so polling does not
/// allocate.
FluidGpuResult answer(cudaError_t error, const char* doing);

/// Returns `result` and stores its message for last_error().
FluidGpuResult set_error(FluidGpuResult result, std::string why);

/// The calling thread's last message, valid until its next failure.
const char* last_error();

}  // namespace fluid::cuda
