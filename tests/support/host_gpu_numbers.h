#pragma once

#include <cstdint>

#include "executor/gpu_driver/backend_table.h"
#include "ir/type.h"

namespace fluid::testing {

/// Numbers as the host that stands in for a GPU reads and writes them.
DType host_dtype(FluidGpuDtype number);
double load_as_double(const void* data, FluidGpuDtype number, int64_t i);
void store_from_double(void* data, FluidGpuDtype number, int64_t i, double value);

/// To the 10 bits of TF32, ties to even.
double as_tf32(double value);

}  // namespace fluid::testing
