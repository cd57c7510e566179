#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "frontend/files/byte_source.h"

namespace fluid {

/// Size of a tar block in bytes. A header is one block, and files are padded to whole blocks.
inline constexpr int64_t kTarBlock = 512;

/// A regular file in a tar archive.
struct TarMember {
  std::string name;
  int64_t offset = 0;  ///< byte offset of the contents in the archive
  int64_t size = 0;    ///< size in bytes
};

/// Iterates over the headers of a tar archive (POSIX ustar and pax, and GNU's long names) without
/// reading the contents of the files.
class TarReader {
 public:
  /// `archive` must outlive the reader. Errors name `archive_name`. `start` is the offset in bytes
  /// of the first header to read.
  TarReader(const ByteSource& archive, std::string archive_name, int64_t start = 0)
      : archive_(archive), archive_name_(std::move(archive_name)), at_(start) {}

  /// Returns the next regular file, or nullopt at the end of the archive. Throws UserError for a
  /// damaged header, or if the archive ends within a file.
  std::optional<TarMember> next();

 private:
  [[noreturn]] void fail(const std::string& why) const;
  std::string read_text(int64_t offset, int64_t size) const;

  const ByteSource& archive_;
  std::string archive_name_;
  int64_t at_;
};

}  // namespace fluid
