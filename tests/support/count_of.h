#pragma once

#include <cstdint>
#include <string_view>

namespace fluid::testing {

/// How often `part` stands in `text`, overlaps included.
inline int64_t count_of(std::string_view text, std::string_view part) {
  int64_t count = 0;
  for (size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

}  // namespace fluid::testing
