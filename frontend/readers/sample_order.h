#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace fluid {

/// The order of the samples of an epoch, a function of the seed and the epoch. Up to kMaxListed
/// samples are shuffled by Fisher-Yates. More samples are permuted by a Feistel network (Luby and
/// Rackoff, 1988) with cycle walking, which needs no memory and no setup time.
class SampleOrder {
 public:
  static constexpr int64_t kMaxListed = int64_t{1} << 20;

  /// Sets the order of `samples` samples. Without `seed`, keeps the order of the data.
  void set(int64_t samples, std::optional<uint64_t> seed, int64_t epoch);
  /// Returns the index of the sample at `position` of the epoch.
  int64_t operator[](int64_t position) const;
  /// Returns the size in bytes of the order of `samples` samples.
  static int64_t bytes(int64_t samples, bool shuffled);

 private:
  uint64_t permute(uint64_t position) const;

  int64_t samples_ = 0;
  bool shuffled_ = false;
  std::vector<int32_t> listed_;  // the shuffled order; empty: the Feistel network permutes
  uint64_t key_ = 0;
  int half_bits_ = 0;
};

}  // namespace fluid
