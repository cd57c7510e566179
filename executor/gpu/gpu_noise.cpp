#include "executor/gpu/gpu_noise.h"

#include <algorithm>
#include <random>

namespace fluid {
namespace {

constexpr int64_t kBytes = int64_t{64} << 10;

}  // namespace

/// The upper byte of each pair is 0x3C to 0x3F or 0xBC to 0xBF: sign and high exponent bits of a
/// float of any width. Magnitudes start at 1 in f16, 2^-7 in bf16 and f32, 2^-63 in f64.
GpuNoise::GpuNoise(const Gpu& gpu) : gpu_(gpu), host_(gpu.allocate_host(kBytes)) {
  std::minstd_rand random;
  for (int64_t i = 0; i < kBytes; i += 2) {
    const auto bits = static_cast<uint32_t>(random() >> 8);
    host_.data()[i] = static_cast<std::byte>(bits);
    host_.data()[i + 1] = static_cast<std::byte>((bits >> 8 & 0x83) | 0x3C);
  }
}

/// Copies the filled part behind itself, which doubles it each time.
void GpuNoise::fill(const GpuStream& stream, std::span<std::byte> memory) const {
  const auto bytes = static_cast<int64_t>(memory.size());
  int64_t filled = std::min(bytes, kBytes);
  if (filled > 0) gpu_.copy(stream, memory.data(), host_.data(), filled);
  while (filled < bytes) {
    const int64_t more = std::min(filled, bytes - filled);
    gpu_.copy(stream, memory.data() + filled, memory.data(), more);
    filled += more;
  }
}

}  // namespace fluid
