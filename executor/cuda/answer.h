#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "executor/gpu/backend_table.h"

namespace fluid::cuda {

/// What the table returns for what CUDA returned while `doing` something. A failure leaves its text
/// for `last_error`, and CUDA's own memory of it is cleared. Work that is not done is no failure:
/// steps ask for it again and again, so that it costs no memory.
FluidGpuResult answer(cudaError_t error, const char* doing);

/// `result`, with its text.
FluidGpuResult refuse(FluidGpuResult result, std::string why);

/// Of this thread, valid until its next failure.
const char* last_error();

}  // namespace fluid::cuda
