#include "executor/device/random_bytes.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>

namespace fluid {

namespace {

constexpr size_t kPatternBytes = size_t{64} << 10;

}  // namespace

void fill_with_random_floats(std::span<std::byte> bytes) {
  std::minstd_rand random;
  size_t filled = std::min(bytes.size(), kPatternBytes);
  for (size_t i = 0; i < filled; i += 2) {
    const auto bits = static_cast<uint32_t>(random() >> 8);
    bytes[i] = static_cast<std::byte>(bits);
    // The high byte of each 16-bit word is 0x3C to 0x3F or 0xBC to 0xBF. The high byte of an
    // element contains the sign and the leading exponent bits.
    if (i + 1 < filled) bytes[i + 1] = static_cast<std::byte>((bits >> 8 & 0x83) | 0x3C);
  }
  while (filled < bytes.size()) {
    const size_t more = std::min(filled, bytes.size() - filled);
    std::memcpy(bytes.data() + filled, bytes.data(), more);
    filled += more;
  }
}

}  // namespace fluid
