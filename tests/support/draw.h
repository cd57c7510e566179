#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace fluid::testing {

/// Random choices of a combination. The same for a seed.
class Draw {
 public:
  explicit Draw(uint64_t seed) : random_(seed) {}
  template <class T>
  T one_of(const std::vector<T>& choices) {
    return choices[random_() % choices.size()];
  }
  bool one_in(size_t n) { return random_() % n == 0; }
  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }

 private:
  std::mt19937_64 random_;
};

}  // namespace fluid::testing
