#pragma once

#include <cstdint>
#include <string>

namespace fluid {

/// The largest file of data that is read at once.
inline constexpr int64_t kMostDataBytes = int64_t{1} << 32;

/// The contents of `path`, decompressed when it is a gzip file and as it is when not. Throws
/// UserError naming the path when it cannot be read, is damaged or cut off, or holds more than
/// `limit` bytes.
std::string read_maybe_gz(const std::string& path, int64_t limit = kMostDataBytes);

}  // namespace fluid
