#pragma once

// Conversions between arrays of f16 or bf16 and of f32. They round to nearest even. All CPUs
// produce the same bits, except in the payload of a NaN.

#include <cstddef>
#include <cstdint>

#include "ir/type.h"

namespace fluid {

/// Converts `n` elements of `half_dtype` to f32.
void halves_to_floats(DType half_dtype, const uint16_t* from, float* to, size_t n);
/// Converts `n` elements of f32 to `half_dtype`.
void floats_to_halves(DType half_dtype, const float* from, uint16_t* to, size_t n);

/// Whether the CPU converts f16 with the instructions of the F16C extension.
bool cpu_has_f16c();

}  // namespace fluid
