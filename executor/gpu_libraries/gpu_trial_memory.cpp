#include "executor/gpu_libraries/gpu_trial_memory.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "executor/device/random_bytes.h"

namespace fluid {
namespace {

constexpr int64_t kTrialPatternBytes = int64_t{64} << 10;

constexpr uintptr_t kAlignment = 256;  ///< bytes; the alignment of addresses from cudaMalloc()

/// A range of device addresses, as integers.
struct Interval {
  uintptr_t begin, end;
  explicit Interval(std::span<std::byte> memory)
      : begin(reinterpret_cast<uintptr_t>(memory.data())), end(begin + memory.size()) {}
};

uintptr_t aligned_up(uintptr_t address) {
  return (address + kAlignment - 1) / kAlignment * kAlignment;
}

/// Returns the first aligned address in `spare` at which `bytes` bytes fit without overlap with
/// `taken`; nullopt if there is no such address.
std::optional<uintptr_t> free_address(const Interval& spare, std::vector<Interval> taken,
                                      size_t bytes) {
  std::ranges::sort(taken, {}, &Interval::begin);
  uintptr_t at = aligned_up(spare.begin);
  for (const Interval& interval : taken) {
    if (interval.end <= at) continue;
    if (at + bytes <= interval.begin) break;
    at = aligned_up(interval.end);
  }
  return at + bytes <= spare.end ? std::optional(at) : std::nullopt;
}

}  // namespace

GpuRandomData::GpuRandomData(const Gpu& gpu)
    : gpu_(gpu), host_(gpu.allocate_host(kTrialPatternBytes)) {
  fill_with_random_floats({host_.data(), static_cast<size_t>(kTrialPatternBytes)});
}

/// Copies the random data from the host to the start of `memory`, then doubles the filled prefix by
/// copies until `memory` is full.
void GpuRandomData::fill(const GpuStream& stream, std::span<std::byte> memory) const {
  const auto bytes = static_cast<int64_t>(memory.size());
  int64_t filled = std::min(bytes, kTrialPatternBytes);
  if (filled > 0) gpu_.copy(stream, memory.data(), host_.data(), filled);
  while (filled < bytes) {
    const int64_t more = std::min(filled, bytes - filled);
    gpu_.copy(stream, memory.data() + filled, memory.data(), more);
    filled += more;
  }
}

void move_preserved_buffers(std::vector<TrialBuffer>& buffers, std::span<std::byte> spare) {
  std::vector<Interval> taken;
  for (const TrialBuffer& buffer : buffers) taken.emplace_back(buffer.memory);
  for (TrialBuffer& buffer : buffers) {
    if (!buffer.preserve) continue;
    const auto at = free_address(Interval(spare), taken, buffer.memory.size());
    if (!at) continue;
    buffer = {.memory = {reinterpret_cast<std::byte*>(*at), buffer.memory.size()}};
    taken.emplace_back(buffer.memory);
  }
}

}  // namespace fluid
