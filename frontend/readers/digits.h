#pragma once

#include <cstdint>

#include "frontend/readers/dataset.h"

namespace fluid {

inline constexpr int64_t kTrainDigits = 10'000;
inline constexpr int64_t kTestDigits = 2'000;

/// Generates handwritten digits in the format of MNIST: image u8[n, 1, 28, 28] and label i64[n]. A
/// digit's strokes get a random affine map, thickness and noise. Sample i depends only on (seed,
/// i).
Dataset generate_digits(int64_t samples, uint64_t seed);

}  // namespace fluid
