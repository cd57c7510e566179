#pragma once

#include "executor/cpu/cpu_target.h"
#include "executor/device/limits.h"

namespace fluid {

/// What the threads of `cpu` can do together: arithmetic as described, bf16 twice as fast as f32
/// where the CPU has its dot products; bytes are measured here, by changing more than caches hold.
Limits cpu_limits(const TargetDescription& cpu);

}  // namespace fluid
