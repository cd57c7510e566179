#pragma once

#include <cstdint>
#include <vector>

namespace fluid {

/// `bytes` that are in use from op number `first` to `last`, both included.
struct Buffer {
  int64_t bytes = 0;
  int first = 0;
  int last = 0;
  int64_t offset = 0;
  bool fixed = false;  ///< `offset` is given
};

/// Sets the offsets that are not fixed, so that buffers in use at the same time do not overlap (two
/// that are both fixed are the caller's); returns the end of the
/// highest. Best fit in several orders (by size, by size x lifetime, by birth), of which the lowest
/// end wins, then a short search that reorders the large ones; deterministic. After Pisarchyk and
/// Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020.
int64_t assign_offsets(std::vector<Buffer>& buffers);

}  // namespace fluid
