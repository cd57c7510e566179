#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "executor/gpu/backend_table.h"

namespace fluid {

/// What a GPU's libraries may be asked to compute.
using GpuTask = std::variant<FluidGpuProduct, FluidGpuConvolution>;

/// A task in words: "f32 64 x 10 of 784, transposed a, with bias".
std::string text_of(const GpuTask& task);

/// "cublaslt.matmul cannot compute f32 64 x 10 of 784 with a workspace of 1.00 MiB (WHY)", for the
/// library kernel that claimed it; `why`: "" where nothing is known.
std::string refusal_text(std::string_view kernel, const GpuTask& task, int64_t workspace,
                         std::string_view why);

/// A task to the last number, in one line: equal for equal tasks alone.
std::string key_text_of(const GpuTask& task);

}  // namespace fluid
