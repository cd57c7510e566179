#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

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

/// A log line of an epoch, or of its validation.
struct LoggedEpoch {
  int64_t epoch = 0, steps = 0;  ///< that number, and the steps until its end
  std::vector<std::pair<std::string, double>> figures = {};
  bool complete = true;  ///< whether all of its data was seen
  bool best = false;
  double ms_per_step = 0, seconds = 0;
};

/// The file of --log-json: one JSON object a step, a validation and an epoch.
class StepLog {
 public:
  /// Opens the file, or makes it; an empty path is no log.
  explicit StepLog(const std::string& path);

  /// Leaves the lines up to that of step `last`, and of that of epoch `epochs`: what comes after
  /// them is run again.
  void cut(int64_t last, int64_t epochs);
  void append(const LoggedStep& step, const Outputs& outputs);
  void append_validation(const LoggedEpoch& epoch);
  void append_epoch(const LoggedEpoch& epoch);

 private:
  std::string path_;
  std::unique_ptr<LineFile> file_;
};

}  // namespace fluid
