#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "frontend/files/byte_source.h"

namespace fluid {

/// Size in bytes above which data is read from disk instead of from memory, by default.
inline constexpr int64_t kMaxLoadedBytes = int64_t{64} << 20;

/// A file without a name in the directory that TMPDIR names, by default /tmp. It is unlinked while
/// it is open, so that no end of the process leaves it. Throws UserError if it cannot be written.
class TemporaryFile {
 public:
  TemporaryFile();
  ~TemporaryFile();
  TemporaryFile(TemporaryFile&& other) noexcept;

  void append(std::span<const std::byte> bytes);
  const std::string& path() const { return path_; }  ///< the former name, for messages
  std::shared_ptr<const ByteSource> release();       ///< the contents; append() must not follow

 private:
  [[noreturn]] void fail() const;

  std::string path_;
  int fd_ = -1;
};

/// Collects bytes: in memory, and once they exceed `memory_limit`, in a TemporaryFile.
class SpillBuffer {
 public:
  explicit SpillBuffer(int64_t memory_limit) : memory_limit_(memory_limit) {}

  void append(std::span<const std::byte> bytes);
  /// Returns the bytes, which are in memory unless they exceed the limit. append() must not follow.
  std::shared_ptr<const ByteSource> release();

 private:
  void flush();

  int64_t memory_limit_;
  std::vector<std::byte> bytes_;  ///< all bytes, or those that are not in the file yet
  std::unique_ptr<TemporaryFile> file_;
};

}  // namespace fluid
