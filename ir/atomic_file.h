#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace fluid {

/// Replaces a file atomically. Writes to a temporary file in the same directory. commit() flushes
/// the temporary file to the disk, renames it to `path` and flushes the directory. Without
/// commit(), the destructor deletes the temporary file. A device or pipe is written directly. Every
/// member throws UserError naming the path on a system error (no directory, no permission, disk
/// full).
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  void commit();
  /// Like commit(), but does not flush: after a crash of the system the file may hold anything. For
  /// caches whose readers check what they read.
  void commit_unflushed();

 private:
  [[noreturn]] void fail(int error) const;

  std::string path_;       ///< the caller's path, for messages
  std::string target_;     ///< `path_` with symbolic links resolved
  std::string temporary_;  ///< path of the temporary file; empty if `target_` is written directly
  int fd_ = -1;
};

/// Flushes a directory's entries to the disk (fsync). Throws UserError naming the path on failure.
void flush_directory(const std::string& path);

/// Throws UserError if AtomicFile cannot create `path`. Leaves no file behind. Call
/// check_writable() before a long computation whose results go to `path`.
void check_writable(const std::string& path);

/// Replaces the contents of `path` by `bytes`, atomically.
void write_file_atomically(const std::string& path, std::span<const std::byte> bytes);
void write_file_atomically(const std::string& path, std::string_view text);

inline constexpr size_t kMaxFileBytes = size_t{64} << 20;  ///< maximum size of a program file

/// Returns the contents of the file or pipe `path`. Throws UserError naming the path if the file
/// cannot be read or has more than kMaxFileBytes. The limit also stops reads from endless devices.
std::string read_file(const std::string& path);

}  // namespace fluid
