#pragma once

#include <cstdint>

#include "frontend/readers/dataset.h"

namespace fluid {

inline constexpr int64_t kTrainDigits = 10'000;
inline constexpr int64_t kTestDigits = 2'000;

/// Generated handwritten digits in the form of MNIST: image u8[n, 1, 28, 28] and label i64[n]. The
/// strokes of a digit under a random affine map, with random thickness and noise. Sample i depends
/// on (seed, i) alone.
Dataset generate_digits(int64_t samples, uint64_t seed);

}  // namespace fluid
