#pragma once

#include <cstdint>

namespace fluid {

/// The position of a Reader in its data, which is the same on all ranks.
struct ReaderPosition {
  int64_t epoch = 0;   ///< number of completed epochs
  int64_t sample = 0;  ///< number of samples of the current epoch that all ranks together have read
  bool operator==(const ReaderPosition&) const = default;
};

}  // namespace fluid
