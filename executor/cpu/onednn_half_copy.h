#pragma once

#include <cstdint>

namespace fluid {

/// A copy from f16 to f32 or back, rounding to nearest even, on all threads of the pool. The same
/// bits on every CPU, but for the payload of a NaN.
struct HalfCopy {
  uint16_t* half = nullptr;
  float* wide = nullptr;
  int64_t n = 0;
  bool widens = true;  ///< from `half` to `wide`

  void run() const;
};

}  // namespace fluid
