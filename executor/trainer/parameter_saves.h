#pragma once

#include <optional>
#include <string>
#include <vector>

#include "executor/executor.h"
#include "executor/fluidrun/step_log.h"

namespace fluid {

/// The files that training writes for its user: --save, --save-best and --log-json. A file that
/// cannot be written while training goes on is named once on stderr, and by check() at the end.
/// With several processes rank 0 alone gives paths.
class TrainingFiles {
 public:
  struct Paths {
    std::string save, best, log;  ///< empty: the file is not wanted
  };
  /// Opens the log. Throws UserError where it cannot be opened.
  explicit TrainingFiles(Paths paths);

  /// Keeps the log's lines up to those of step `last` and of epoch `epochs`.
  void cut_log(int64_t last, int64_t epochs) { log_.cut(last, epochs); }
  /// After the first line that cannot be written the log ends.
  void log(const LoggedStep& step, const Outputs& outputs);
  void log_validation(const LoggedEpoch& epoch);
  void log_epoch(const LoggedEpoch& epoch);

  /// Writes --save. Parameters that are not finite go to PATH.nonfinite instead. Throws UserError
  /// where the file cannot be written.
  void save(Executor& executor);
  /// The same while training goes on: a file that cannot be written is tried again by save().
  void try_to_save(Executor& executor);
  /// Writes --save-best, as save() does. A later best epoch tries again.
  void save_best(Executor& executor);
  /// After a best epoch: "saved PATH", or "not saved PATH".
  std::string best_text() const;

  /// At the end of training, throws UserError for parameters that are not finite, and for each file
  /// that lacks something.
  void check(Executor& executor) const;

 private:
  std::string save_finite(Executor& executor, const std::string& path);
  template <class Append>
  void append(int64_t step, const Append& append);

  Paths paths_;
  StepLog log_;
  std::string best_path_;                              ///< of the file written last
  std::string log_failure_, best_failure_;             ///< what could not be written, and why
  std::optional<std::vector<std::string>> nonfinite_;  ///< parameters, when they were last saved
  bool warned_of_best_ = false, warned_of_save_ = false;
};

}  // namespace fluid
