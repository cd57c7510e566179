#pragma once

#include "executor/gpu_driver/backend_table.h"

namespace fluid::testing {

// Kernels of GPUs that the host stands in for, as functions of the table: those of host_gpu_text(),
// or of PTX, whose threads are run one at a time.
FluidGpuResult host_assemble(FluidGpu* gpu, const char* text, size_t length, void** image,
                             size_t* image_bytes);
void host_image_release(void* image);
FluidGpuResult host_module_load(FluidGpu* gpu, const void* image, size_t bytes,
                                FluidGpuModule** module);
FluidGpuResult host_module_unload(FluidGpuModule* module);
FluidGpuResult host_module_kernel(FluidGpuModule* module, const char* name,
                                  FluidGpuKernel** kernel);

void run_host_kernel(const FluidGpuLaunch& launch);

}  // namespace fluid::testing
