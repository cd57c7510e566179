#pragma once

#include <cstdint>
#include <vector>

namespace fluid {

/// A buffer of `bytes` that is live from op `first` to op `last`, inclusive.
struct Buffer {
  int64_t bytes = 0;
  int first = 0;
  int last = 0;
  int64_t offset = 0;
  bool fixed = false;  ///< whether `offset` is given by the caller
};

/// Assigns offsets to the buffers that are not fixed, deterministically. Buffers that are live at
/// the same time do not overlap, unless both are fixed. Returns the total size in bytes: the end of
/// the highest buffer. Tries best fit in three orders (by size, by size x lifetime, by first op)
/// and keeps the placement with the smallest total size. Then a short local search reorders the
/// large buffers. The method follows Pisarchyk and Lee, "Efficient Memory Management for Deep
/// Neural Net Inference", 2020.
int64_t assign_offsets(std::vector<Buffer>& buffers);

}  // namespace fluid
