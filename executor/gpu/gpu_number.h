#pragma once

#include <optional>

#include "executor/gpu/backend_table.h"
#include "ir/type.h"

namespace fluid {

/// The table's name of a dtype; nothing for a dtype that the libraries do not compute in.
inline std::optional<FluidGpuDtype> gpu_number(DType dtype) {
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
