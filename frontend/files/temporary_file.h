#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "frontend/files/byte_source.h"

namespace fluid {

/// Default size in bytes above which data is read from disk instead of from memory.
inline constexpr int64_t kMaxLoadedBytes = int64_t{64} << 20;

/// An unnamed file in the directory $TMPDIR, by default /tmp. It is unlinked right after it is
/// created, so the system deletes it when the process ends. Throws UserError if the file cannot be
/// created or written.
class TemporaryFile {
 public:
  TemporaryFile();
  ~TemporaryFile();
  TemporaryFile(TemporaryFile&& other) noexcept;

  void append(std::span<const std::byte> bytes);
  /// Writes `bytes` from `offset` on, which may be after the end of the file.
  void write_at(int64_t offset, std::span<const std::byte> bytes);
  const std::string& path() const { return path_; }  ///< path before unlink(), for messages
  /// Returns the contents. Nothing may be written afterwards.
  std::shared_ptr<const ByteSource> release();

 private:
  [[noreturn]] void fail() const;

  std::string path_;
  int fd_ = -1;
};

/// A byte buffer in memory, which moves to a TemporaryFile when it exceeds `memory_limit` bytes.
class SpillBuffer {
 public:
  explicit SpillBuffer(int64_t memory_limit) : memory_limit_(memory_limit) {}

  void append(std::span<const std::byte> bytes);
  /// Returns the bytes: in memory up to the limit, else in a TemporaryFile. append() must not be
  /// called afterwards.
  std::shared_ptr<const ByteSource> release();

 private:
  void flush();

  int64_t memory_limit_;
  std::vector<std::byte> bytes_;  ///< bytes not yet written to file_
  std::unique_ptr<TemporaryFile> file_;
};

}  // namespace fluid
