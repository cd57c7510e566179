#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace fluid {

/// An append-only file that other processes may read at the same time. Appends each record with one
/// write(). If the write fails midway, removes the part of the record that was written. Functions
/// throw UserError, with the path and the reason, if a system call fails.
class AppendFile {
 public:
  /// Opens the file, or creates it. Keeps the contents of an existing file.
  explicit AppendFile(const std::string& path);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;

  /// Truncates the file to its first `bytes` bytes. Does nothing for a pipe or a device file.
  void truncate(int64_t bytes);
  void append(std::string_view record);

 private:
  [[noreturn]] void fail(int error) const;

  std::string path_;
  int fd_ = -1;
};

}  // namespace fluid
