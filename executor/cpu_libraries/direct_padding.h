#pragma once

// Padded copies of the source images of a convolution.

#include <algorithm>
#include <cstring>

#include "executor/cpu_libraries/direct_problem.h"

namespace fluid {

/// Copies rows [begin, end) of all padded images of `source` to `padded`: [image][y][x][channel].
template <class T>
void pad_direct_rows(const DirectProblem& p, const T* source, T* padded, int64_t begin,
                     int64_t end) {
  const int64_t channels = p.source_channels(), values = p.x.padded * channels;
  const int64_t first = std::max<int64_t>(-p.x.low, 0);
  const int64_t last = std::min(p.x.padded, p.x.source - p.x.low);
  for (int64_t row = begin; row < end; ++row) {
    T* const to = padded + row * values;
    const int64_t image = row / p.y.padded, y = row % p.y.padded + p.y.low;
    if (y < 0 || y >= p.y.source || first >= last) {
      std::fill_n(to, values, T{0});
      continue;
    }
    const T* const from =
        source + ((image * p.y.source + y) * p.x.source + first + p.x.low) * channels;
    std::fill(to, to + first * channels, T{0});
    std::memcpy(to + first * channels, from,
                static_cast<size_t>((last - first) * channels) * sizeof(T));
    std::fill(to + last * channels, to + values, T{0});
  }
}

}  // namespace fluid
