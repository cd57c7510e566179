#pragma once

#include "executor/gpu/gpu_device.h"

namespace fluid::testing {

/// For GpuDeviceOptions::compile, where the host stands in for a GPU: the code that becomes PTX,
/// compiled for the host, its threads emulated.
GpuProgram compile_emulated(std::span<const kir::Kernel> passes, const std::string& arch);

}  // namespace fluid::testing
