#pragma once

#include <cstdint>

#include "frontend/readers/dataset.h"

namespace fluid {

inline constexpr int64_t kTrainDigits = 10'000;  ///< default size of the training split, in samples
inline constexpr int64_t kTestDigits = 2'000;    ///< default size of the test split, in samples

/// Generates synthetic handwritten digits in the format of MNIST: columns image u8[n, 1, 28, 28]
/// and label i64[n]. The strokes of a digit get a random affine transform, thickness and noise.
/// Sample i depends only on `seed` and i.
Dataset generate_digits(int64_t samples, uint64_t seed);

}  // namespace fluid
