#pragma once

#include "executor/gpu_driver/backend_table.h"

namespace fluid::testing {

/// A GPU as its driver describes it (H200), for which libraries candidate what they are worth.
inline constexpr FluidGpuDescription kH200 = {.major = 9,
                                              .minor = 0,
                                              .multiprocessors = 132,
                                              .memory_bus_bits = 6144,
                                              .clock_khz = 1'980'000,
                                              .memory_clock_khz = 3'201'000};

}  // namespace fluid::testing
