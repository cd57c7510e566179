#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace fluid {

/// A file that appears under its name whole or not at all. Bytes go to a temporary file in the same
/// directory; commit() flushes it to the disk, renames it over `path` and flushes the directory.
/// Without commit() nothing remains. A `path` that is a device or a pipe is written directly.
/// Every member throws UserError naming the path when the system refuses (no directory, no
/// permission, disk full).
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  void commit();

 private:
  [[noreturn]] void fail(int error) const;

  std::string path_;       ///< as the user gave it
  std::string target_;     ///< symbolic links resolved
  std::string temporary_;  ///< empty when written directly
  int fd_ = -1;
};

/// Flushes the names that a directory holds to the disk; throws UserError as AtomicFile does.
void flush_directory(const std::string& path);

/// Throws what writing `path` would throw as far as that can be told before; leaves nothing. For
/// work whose result is saved hours later.
void check_writable(const std::string& path);

/// Writes `bytes` as the whole contents of `path`, atomically.
void write_file_atomically(const std::string& path, std::span<const std::byte> bytes);
void write_file_atomically(const std::string& path, std::string_view text);

inline constexpr size_t kMaxFileBytes = size_t{64} << 20;  ///< of a program's file

/// The whole contents of `path`, which may be a pipe. Throws UserError naming the path when it
/// cannot be read, or holds more than kMaxFileBytes: a device may never end.
std::string read_file(const std::string& path);

}  // namespace fluid
