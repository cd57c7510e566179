#pragma once

#include "executor/cpu/cpu_target.h"
#include "executor/device/limits.h"

namespace fluid {

/// Returns the limits of all threads of `cpu` together. FLOP/s follow from the description; bf16
/// counts twice f32 if the CPU has bf16 dot products. Memory bandwidth is measured, over more data
/// than the caches hold.
Limits cpu_limits(const TargetDescription& cpu);

}  // namespace fluid
