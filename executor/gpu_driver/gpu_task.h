#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "executor/gpu_driver/backend_table.h"
#include "ir/type.h"

namespace fluid {

/// A matmul or convolution for a GPU library to compute.
using GpuTask = std::variant<FluidGpuMatmul, FluidGpuConvolution>;

/// Describes a task in messages to users, such as "f32 64 x 10 of 784, transposed a, with bias".
std::string task_text(const GpuTask& task);

/// Formats "KERNEL cannot compute TASK with a workspace of 1.00 MiB (WHY)". `kernel`: name of the
/// library kernel. `why`: the reason, or "".
std::string rejection_message(std::string_view kernel, const GpuTask& task, int64_t workspace,
                              std::string_view why);

/// Serializes a task uniquely, in one line, for use in cache keys.
std::string task_key(const GpuTask& task);

/// Converts a dtype to FluidGpuDtype; nullopt for a dtype that GPU libraries do not support.
inline std::optional<FluidGpuDtype> gpu_dtype(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return fluid_gpu_f64;
    case DType::f32:
      return fluid_gpu_f32;
    case DType::f16:
      return fluid_gpu_f16;
    case DType::bf16:
      return fluid_gpu_bf16;
    default:
      return std::nullopt;
  }
}

}  // namespace fluid
