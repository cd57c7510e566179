#pragma once

#include <cstdint>
#include <string>

namespace fluid {

/// The contents of `path`, decompressed when it is a gzip file and as it is when not. Throws
/// UserError naming the path when it cannot be read, is damaged or cut off, or holds more than
/// `limit` bytes.
std::string read_maybe_gz(const std::string& path, int64_t limit);

}  // namespace fluid
