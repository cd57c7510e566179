#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "frontend/files/byte_source.h"

namespace fluid {

/// A file in a ZIP archive.
struct ZipMember {
  std::string name;
  bool deflated = false;
  int64_t header_offset = 0;  ///< byte offset of the local header in the archive
  int64_t stored_size = 0;    ///< compressed size in bytes
  int64_t size = 0;           ///< uncompressed size in bytes
  uint32_t crc = 0;           ///< CRC-32 of the uncompressed contents
};

/// Reads the central directory of a ZIP archive, with the extensions of ZIP64. Throws UserError,
/// naming `archive_name`, for a damaged directory, and for members that are encrypted or use a
/// compression method other than deflate.
std::vector<ZipMember> read_zip_directory(const ByteSource& archive,
                                          const std::string& archive_name);
/// Returns the byte offset in the archive of a member's data, which may be compressed.
int64_t zip_data_offset(const ByteSource& archive, const ZipMember& member,
                        const std::string& archive_name);
/// Reads a member that is not compressed, and throws UserError, naming it, if its CRC-32 is wrong.
void check_stored_zip_member(const ByteSource& archive, const ZipMember& member,
                             const std::string& archive_name);
/// Decompresses a deflated member. Calls `callback` for consecutive parts of its contents. Throws
/// UserError for damaged data. A wrong CRC-32 is detected only after the last part.
void inflate_zip_member(const ByteSource& archive, const ZipMember& member,
                        const std::string& archive_name,
                        const std::function<void(std::span<const std::byte>)>& callback);

}  // namespace fluid
