#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "executor/gpu_driver/backend_table.h"
#include "ir/type.h"

namespace fluid {

/// A task for the GPU libraries.
using GpuTask = std::variant<FluidGpuMatmul, FluidGpuConvolution>;

/// Describes a task: "f32 64 x 10 of 784, transposed a, with bias".
std::string text_of(const GpuTask& task);

/// "cublaslt.matmul cannot compute f32 64 x 10 of 784 with a workspace of 1.00 MiB (WHY)".
/// `kernel`: the library kernel. `why`: the reason, or "".
std::string rejection_message(std::string_view kernel, const GpuTask& task, int64_t workspace,
                              std::string_view why);

/// A unique key of a task, in one line.
std::string key_text_of(const GpuTask& task);

/// The table's name of a dtype; nullopt for a dtype that the libraries do not compute in.
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
