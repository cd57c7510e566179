#pragma once

#include <cstddef>
#include <span>

namespace fluid {

/// Fills `bytes` with random numbers for timing kernels. As values of any float dtype, they have
/// both signs and are normal numbers with a magnitude below 2: at least 1 in f16, 2^-7 in bf16 and
/// f32, and 2^-63 in f64.
void fill_with_random_floats(std::span<std::byte> bytes);

}  // namespace fluid
