#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "executor/trainer/fit_options.h"

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

/// The file of --log-json: a JSON object for each step, validation and epoch. After the first line
/// that cannot be written the log ends, and training goes on.
class StepLog {
 public:
  /// Opens the file, or makes it; an empty path is no log. Throws UserError where it cannot.
  explicit StepLog(const std::string& path);

  /// Keeps the lines of the steps up to `last` and of the epochs up to `epochs`: a resumed run
  /// writes the others again.
  void cut(int64_t last, int64_t epochs);
  void append(const StepEvent& step);
  /// The line of the epoch's validation, if there was one, and the line of the epoch.
  void append(const EpochEvent& epoch);

  /// At the end of training: throws UserError if a line could not be written.
  void check() const;

 private:
  void append(int64_t step, const std::string& line);

  std::string path_;
  std::unique_ptr<LineFile> file_;
  std::string failure_;
};

}  // namespace fluid
