#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "frontend/files/byte_source.h"

namespace fluid {

/// Opens files on demand and keeps the most recently used ones open, so that a program reads more
/// files than it may have open at once. Several threads may call open().
class OpenFiles {
 public:
  static constexpr size_t kMaxOpen = 64;

  /// Returns the file at `path`. It stays open until the caller drops it, even if other files take
  /// its place. Throws UserError if the file cannot be opened.
  std::shared_ptr<const FileBytes> open(const std::string& path);

 private:
  std::mutex mutex_;
  /// Path -> file, the most recently used one last.
  std::vector<std::pair<std::string, std::shared_ptr<const FileBytes>>> files_;
};

}  // namespace fluid
