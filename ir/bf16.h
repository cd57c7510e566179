#pragma once

#include <bit>
#include <cstdint>

namespace fluid {

inline float bf16_to_float(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}
/// Converts f32 to bf16, rounding to nearest even. A NaN stays a NaN. Branch-free, so that the
/// compiler vectorises the calling loop.
inline uint16_t float_to_bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
  return static_cast<uint16_t>((value != value ? bits | 0x400000u : rounded) >> 16);
}

}  // namespace fluid
