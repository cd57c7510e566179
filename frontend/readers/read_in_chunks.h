#pragma once

#include <cstdint>
#include <functional>

namespace fluid {

/// Reads a chunk of a sequence: the elements from `begin` to before `end`. Returns a function that
/// uses what was read.
using ReadChunk = std::function<std::function<void()>(int64_t begin, int64_t end)>;

/// Calls `read` for chunks of `chunk` of `count` elements, on all cores at once. Calls the
/// functions that it returns one after the other, in the order of the chunks: their result does not
/// depend on the number of cores. Stops at the first exception, in the order of the chunks, and
/// rethrows it.
void read_in_chunks(int64_t count, int64_t chunk, const ReadChunk& read);

}  // namespace fluid
