#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "executor/gpu_driver/backend_table.h"

namespace fluid::cuda {

/// Converts a cudaError_t to the status code that FluidGpuTable's functions return. On an error,
/// clears CUDA's last error and stores an error message for last_error(). `action`: describes the
/// failed call in the message. Stores no message for cudaErrorNotReady, so that polling does not
/// allocate memory.
FluidGpuResult to_result(cudaError_t error, const char* action);

/// Stores the error message `why` for last_error(), and returns `result`.
FluidGpuResult set_error(FluidGpuResult result, std::string why);

/// Returns the calling thread's last error message. The pointer is valid until the thread's next
/// error.
const char* last_error();

}  // namespace fluid::cuda
