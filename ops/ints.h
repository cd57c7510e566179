#pragma once

#include <cstdint>
#include <vector>

namespace fluid {

/// A list of ints that a single int converts to: `{.kernel = 3, .stride = {2, 1}}`.
struct Ints : std::vector<int64_t> {
  using std::vector<int64_t>::vector;
  Ints() = default;
  Ints(int value) : vector{value} {}                  // NOLINT: a number is a list of one
  Ints(int64_t value) : vector{value} {}              // NOLINT
  Ints(const std::vector<int64_t>& v) : vector(v) {}  // NOLINT
};

}  // namespace fluid
