#pragma once

#include <cstdint>

namespace fluid {

/// Copies f16 to f32 or back on all threads of the pool, rounding to nearest even. Every CPU gives
/// the same bits, except for NaN payloads.
struct HalfCopy {
  uint16_t* half = nullptr;
  float* wide = nullptr;
  int64_t n = 0;
  bool widens = true;  ///< copies `half` to `wide`, else `wide` to `half`

  void run() const;
};

}  // namespace fluid
