#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

namespace fluid {

/// The random number generator SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom
/// number generators", OOPSLA 2014), for shuffles and synthetic data. The sequence is the same on
/// every machine.
class SplitMix64 {
 public:
  explicit SplitMix64(uint64_t seed, uint64_t stream = 0)
      : state_(mix(seed) ^ mix(stream + 0x632be59bd9b4e019u)) {}

  uint64_t next() { return mix(state_ += 0x9e3779b97f4a7c15u); }
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }  ///< in [0, 1)
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  /// Returns a normal random number with mean 0 and variance 1 (Box and Muller, 1958).
  double normal() {
    const double radius = std::sqrt(-2 * std::log1p(-uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }
  /// Returns a random integer in [0, n), n > 0: the high 64 bits of next() * n. The bias is below n
  /// / 2^64.
  uint64_t below(uint64_t n) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(next()) * n) >> 64);
  }

 private:
  static uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  uint64_t state_;
};

}  // namespace fluid
