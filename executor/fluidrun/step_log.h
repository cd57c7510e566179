#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "executor/trainer/fit_options.h"

namespace fluid {

/// A file of lines that readers follow while it grows: each line is one write, and is in the file
/// entirely or not at all. Throws UserError with the path and the reason when the system fails.
class LineFile {
 public:
  /// Opens or creates the file; its content stays until cut().
  explicit LineFile(const std::string& path);
  ~LineFile();
  LineFile(const LineFile&) = delete;

  /// Truncates a regular file to its first `bytes`.
  void cut(int64_t bytes);
  /// Appends `line` and a line feed.
  void append(std::string_view line);

 private:
  [[noreturn]] void fail(int error) const;

  std::string path_;
  int fd_ = -1;
  std::string text_;
};

/// The file of --log-json: a JSON object for each step, validation and epoch. The log ends at the
/// first write that fails; training continues.
class StepLog {
 public:
  /// Opens or creates the file; an empty path turns the log off. Throws UserError.
  explicit StepLog(const std::string& path);

  /// Keeps the lines of steps up to `last` and of epochs up to `epochs`; a resumed run writes the
  /// later ones again.
  void cut(int64_t last, int64_t epochs);
  void append(const StepEvent& step);
  /// Appends the line of the validation, if any, then the line of the epoch.
  void append(const EpochEvent& epoch);

  /// Throws UserError if a write failed.
  void check() const;

 private:
  void append(int64_t step, const std::string& line);

  std::string path_;
  std::unique_ptr<LineFile> file_;
  std::string failure_;
};

}  // namespace fluid
