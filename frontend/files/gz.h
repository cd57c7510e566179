#pragma once

#include <cstdint>
#include <string>

namespace fluid {

/// Size limit in bytes of data files that are read into memory.
inline constexpr int64_t kMaxDataBytes = int64_t{1} << 32;

/// Whether the file `path` begins as a gzip file does. False for what cannot be read.
bool is_gzipped(const std::string& path);

/// Returns the contents of the file `path`, decompressed if it is a gzip file. Throws UserError
/// naming the path when the file is unreadable, damaged or truncated, or when its contents have
/// more than `limit` bytes.
std::string read_maybe_gz(const std::string& path, int64_t limit = kMaxDataBytes);

}  // namespace fluid
