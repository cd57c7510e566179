#include "tests/support/host_gpu_numbers.h"

#include <bit>
#include <cmath>

#include "ir/tensor.h"

namespace fluid::testing {

DType host_dtype(FluidGpuDtype number) {
  constexpr DType kTypes[] = {DType::f64, DType::f32, DType::f16, DType::bf16};
  return kTypes[number];
}

double load_as_double(const void* data, FluidGpuDtype number, int64_t i) {
  if (number == fluid_gpu_f64) return static_cast<const double*>(data)[i];
  if (number == fluid_gpu_f32) return static_cast<const float*>(data)[i];
  return half_to_float(static_cast<const uint16_t*>(data)[i], host_dtype(number));
}

void store_from_double(void* data, FluidGpuDtype number, int64_t i, double value) {
  if (number == fluid_gpu_f64) {
    static_cast<double*>(data)[i] = value;
  } else if (number == fluid_gpu_f32) {
    static_cast<float*>(data)[i] = static_cast<float>(value);
  } else {
    static_cast<uint16_t*>(data)[i] = float_to_half(static_cast<float>(value), host_dtype(number));
  }
}

double as_tf32(double value) {
  auto bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  if (!std::isfinite(value)) return value;
  bits += 0xfff + (bits >> 13 & 1);
  return std::bit_cast<float>(bits & ~uint32_t{0x1fff});
}

}  // namespace fluid::testing
