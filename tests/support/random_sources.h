#pragma once

#include <cstdint>
#include <initializer_list>
#include <random>
#include <string>
#include <vector>

#include "frontend/program.h"
#include "ir/tensor.h"

namespace fluid::testing {

/// Random choices, and the feeds and parameters of a random program. The same for a seed.
class RandomSources {
 public:
  explicit RandomSources(uint64_t seed);

  Program& net() { return net_; }
  Batch& batch() { return batch_; }

  size_t below(size_t n) { return static_cast<size_t>(random_() % n); }
  bool coin() { return below(2) == 0; }
  template <class T>
  T one_of(std::initializer_list<T> choices) {
    return choices.begin()[below(choices.size())];
  }
  int64_t extent() { return one_of<int64_t>({1, 2, 3, 5, 13, 16, 40}); }
  /// An axis of `x`, whose rank is not 0.
  int64_t axis_of(Value x) { return static_cast<int64_t>(below(x.shape().size())); }

  /// Adds a feed of normally distributed numbers.
  Value feed(const Shape& shape);
  /// Adds a feed of integers in [0, classes).
  Value labels(const Shape& shape, int64_t classes);
  Value parameter(const Shape& shape);

 private:
  std::vector<int64_t> extents_of(const Shape& shape) const;

  std::mt19937_64 random_;
  Program net_;
  Batch batch_;
  int parameters_ = 0;
};

}  // namespace fluid::testing
