#pragma once

#include <cstdint>

namespace fluid {

/// How far the ranks of a Reader have read.
struct ReaderPosition {
  int64_t epoch = 0;   ///< number of epochs that were read to their end
  int64_t sample = 0;  ///< samples of the epoch after them that all ranks together have read
  bool operator==(const ReaderPosition&) const = default;
};

}  // namespace fluid
