#include "frontend/readers/sample_order.h"

#include <bit>
#include <numeric>
#include <utility>

#include "frontend/readers/split_mix64.h"

namespace fluid {
namespace {

constexpr int kRounds = 6;

}  // namespace

void SampleOrder::set(int64_t samples, std::optional<uint64_t> seed, int64_t epoch) {
  samples_ = samples;
  shuffled_ = seed.has_value();
  if (!shuffled_) return;
  SplitMix64 random(*seed, static_cast<uint64_t>(epoch));
  if (samples > kMaxListed) {
    key_ = random.next();
    half_bits_ = (std::bit_width(static_cast<uint64_t>(samples - 1)) + 1) / 2;
    return;
  }
  listed_.resize(static_cast<size_t>(samples));
  std::iota(listed_.begin(), listed_.end(), 0);
  for (size_t i = listed_.size(); i > 1; --i) {
    std::swap(listed_[i - 1], listed_[static_cast<size_t>(random.below(i))]);
  }
}

int64_t SampleOrder::operator[](int64_t position) const {
  if (!shuffled_) return position;
  if (!listed_.empty()) return listed_[static_cast<size_t>(position)];
  auto sample = static_cast<uint64_t>(position);
  do {
    sample = permute(sample);
  } while (sample >= static_cast<uint64_t>(samples_));
  return static_cast<int64_t>(sample);
}

uint64_t SampleOrder::permute(uint64_t position) const {
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  uint64_t left = position >> half_bits_, right = position & mask;
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t mixed = SplitMix64(key_ ^ right, static_cast<uint64_t>(round)).next() & mask;
    left = std::exchange(right, left ^ mixed);
  }
  return left << half_bits_ | right;
}

int64_t SampleOrder::bytes(int64_t samples, bool shuffled) {
  return shuffled && samples <= kMaxListed ? samples * static_cast<int64_t>(sizeof(int32_t)) : 0;
}

}  // namespace fluid
