#pragma once

#include <array>
#include <cstdint>

namespace fluid {

/// Philox4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw, "Parallel random
/// numbers: as easy as 1, 2, 3" (SC'11). Maps a counter and a key to four 32-bit words.
std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

/// Host version of ScalarOp::philox: the first word of philox4x32. The counter is {low and high
/// word of `index`, low word of `counter`, low word of `stream`}; the key is {low and high word of
/// `seed`}.
uint32_t philox_bits(int64_t seed, int64_t counter, int64_t stream, int64_t index);

}  // namespace fluid
