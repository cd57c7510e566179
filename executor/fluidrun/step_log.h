#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "executor/trainer/append_file.h"
#include "executor/trainer/fit_options.h"

namespace fluid {

/// The log file of --log-json: a JSON object for each step, validation and epoch. After the first
/// failed write, training continues without the log.
class StepLog {
 public:
  /// Opens the log file, or creates it. An empty path disables the log. Throws UserError if the
  /// file cannot be opened.
  explicit StepLog(const std::string& path);

  /// Removes the lines of steps after `last_step` and of epochs after `last_epoch`, because a
  /// resumed run logs these steps and epochs again.
  void truncate_after(int64_t last_step, int64_t last_epoch);

  void append(const StepEvent& step);
  /// Appends a line for the validation of the epoch, if any, and then a line for the epoch.
  void append(const EpochEvent& epoch);

  /// Throws UserError if a write to the log failed.
  void throw_if_failed() const;

 private:
  void append(int64_t step, const std::string& line);

  std::string path_;
  std::unique_ptr<AppendFile> file_;
  std::string failure_;
};

}  // namespace fluid
