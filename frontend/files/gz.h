#pragma once

#include <cstdint>
#include <string>

namespace fluid {

/// Size limit of data files that are read as a whole.
inline constexpr int64_t kMostDataBytes = int64_t{1} << 32;

/// Returns the contents of `path`, decompressed if it is a gzip file. Throws UserError naming the
/// path when it is unreadable, damaged, truncated, or has more than `limit` bytes.
std::string read_maybe_gz(const std::string& path, int64_t limit = kMostDataBytes);

}  // namespace fluid
