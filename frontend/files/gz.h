#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "frontend/files/byte_source.h"

namespace fluid {

/// Size limit in bytes of data files that are read into memory.
inline constexpr int64_t kMaxDataBytes = int64_t{1} << 32;

/// Returns whether the file `path` starts with the magic number of gzip. Returns false if it cannot
/// be read.
bool is_gzipped(const std::string& path);

/// Returns the contents of the file `path`, decompressed if it is a gzip file. Throws UserError
/// naming the path when the file is unreadable, damaged or truncated, or when its contents have
/// more than `limit` bytes.
std::string read_gz_or_plain(const std::string& path, int64_t limit = kMaxDataBytes);

/// Returns the contents of the file `path`, decompressed if it is a gzip file. An uncompressed
/// regular file is read on demand. Other contents are copied to memory if they have at most
/// `memory_limit` bytes, else to a temporary file. Throws UserError like read_gz_or_plain(), but
/// has no size limit.
std::shared_ptr<const ByteSource> open_gz_or_plain(const std::string& path, int64_t memory_limit);

}  // namespace fluid
