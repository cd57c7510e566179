#pragma once

#include <cstdint>
#include <vector>

namespace fluid {

/// A list of ints to which a single int converts: `{.kernel = 3, .stride = {2, 1}}`.
struct Ints : std::vector<int64_t> {
  using std::vector<int64_t>::vector;
  Ints() = default;
  Ints(int value) : vector{value} {}      // NOLINT: implicit, so that one number is a list
  Ints(int64_t value) : vector{value} {}  // NOLINT
  Ints(const std::vector<int64_t>& v) : vector(v) {}  // NOLINT
};

}  // namespace fluid
