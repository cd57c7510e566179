#include "executor/gpu_libraries/gpu_trial_memory.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>

namespace fluid {
namespace {

constexpr int64_t kBytes = int64_t{64} << 10;

constexpr uintptr_t kAlignment = 256;  ///< of separately allocated GPU memory

/// An address range. Device addresses serve as integers only.
struct Interval {
  uintptr_t begin, end;
  explicit Interval(std::span<std::byte> memory)
      : begin(reinterpret_cast<uintptr_t>(memory.data())), end(begin + memory.size()) {}
};

uintptr_t aligned_up(uintptr_t address) {
  return (address + kAlignment - 1) / kAlignment * kAlignment;
}

/// The first aligned address in `spare` where `bytes` do not overlap `taken`.
std::optional<uintptr_t> free_place(const Interval& spare, std::vector<Interval> taken,
                                    size_t bytes) {
  std::ranges::sort(taken, {}, &Interval::begin);
  uintptr_t at = aligned_up(spare.begin);
  for (const Interval& place : taken) {
    if (place.end <= at) continue;
    if (at + bytes <= place.begin) break;
    at = aligned_up(place.end);
  }
  return at + bytes <= spare.end ? std::optional(at) : std::nullopt;
}

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

void move_needed(std::vector<TrialBuffer>& buffers, std::span<std::byte> spare) {
  std::vector<Interval> taken;
  for (const TrialBuffer& buffer : buffers) taken.emplace_back(buffer.memory);
  for (TrialBuffer& buffer : buffers) {
    if (!buffer.needed) continue;
    const auto at = free_place(Interval(spare), taken, buffer.memory.size());
    if (!at) continue;
    buffer = {.memory = {reinterpret_cast<std::byte*>(*at), buffer.memory.size()}};
    taken.emplace_back(buffer.memory);
  }
}

}  // namespace fluid
