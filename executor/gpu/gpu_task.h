#pragma once

#include <string>
#include <variant>

#include "executor/gpu/backend_table.h"

namespace fluid {

/// What a GPU's libraries may be asked to compute.
using GpuTask = std::variant<FluidGpuProduct, FluidGpuConvolution>;

/// A task in words: "f32 64 x 10 of 784, transposed a, with bias".
std::string text_of(const GpuTask& task);

/// A task to the last number, in one line: equal for equal tasks alone.
std::string key_text_of(const GpuTask& task);

}  // namespace fluid
