#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace fluid {

/// A file of lines that others read while it grows: every line is there whole or not at all, and is
/// handed to the system at once. Throws UserError naming the path and the reason when the system
/// refuses.
class LineFile {
 public:
  /// Opens the file, or makes it; what is in it stays until cut().
  explicit LineFile(const std::string& path);
  ~LineFile();
  LineFile(const LineFile&) = delete;

  /// Leaves the first `bytes`; what is no regular file stays as it is.
  void cut(int64_t bytes);
  /// Appends `line` and a line feed.
  void append(std::string_view line);

 private:
  [[noreturn]] void fail(int error) const;

  std::string path_;
  int fd_ = -1;
  std::string text_;
};

}  // namespace fluid
