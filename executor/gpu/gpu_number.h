#pragma once

#include <optional>

#include "executor/gpu/backend_table.h"
#include "ir/type.h"

namespace fluid {

/// What a GPU's functions call a dtype; nothing for those that they do not compute in.
inline std::optional<FluidGpuNumber> gpu_number(DType dtype) {
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
