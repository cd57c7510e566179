#include "executor/gpu/gpu_trial_buffers.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace fluid {
namespace {

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
