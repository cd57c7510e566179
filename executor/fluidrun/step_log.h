#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "executor/executor.h"
#include "executor/fluidrun/line_file.h"

namespace fluid {

/// What the log says of a step besides its outputs.
struct LoggedStep {
  int64_t epoch = 0, step = 0;
  double lr = 0;
  std::optional<LossScaling> scaling = {};
  bool skipped = false;
  double ms = 0;
};

/// The file of --log-json: one JSON object a step.
class StepLog {
 public:
  /// Opens the file, or makes it; an empty path is no log.
  explicit StepLog(const std::string& path);

  /// Leaves the lines up to that of step `last`: the steps after it are run again.
  void cut(int64_t last);
  void append(const LoggedStep& step, const Outputs& outputs);

 private:
  std::string path_;
  std::unique_ptr<LineFile> file_;
};

}  // namespace fluid
