// A GPU library that needs another one, as one does whose cuDNN was not installed.

#include "executor/gpu_driver/backend_table.h"

extern "C" int fluid_absent();

extern "C" const FluidGpuTable* fluid_gpu_table(uint32_t) {
  fluid_absent();
  return nullptr;
}
