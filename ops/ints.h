#pragma once

#include <cstdint>
#include <vector>

namespace fluid {

/// A list of ints. A single int converts to a list of one element, as in `{.kernel = 3, .stride =
/// {2, 1}}`.
struct Ints : std::vector<int64_t> {
  using std::vector<int64_t>::vector;
  Ints() = default;
  Ints(int value) : vector{value} {}                  // NOLINT: implicit conversion from one int
  Ints(int64_t value) : vector{value} {}              // NOLINT: implicit conversion
  Ints(const std::vector<int64_t>& v) : vector(v) {}  // NOLINT: implicit conversion
};

}  // namespace fluid
