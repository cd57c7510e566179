#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "executor/executor.h"

namespace fluid {

/// The parameter files that fit() writes on rank 0. A file that cannot be written while training
/// goes on is named once by `notice`, and again by check() at the end.
class ParameterSaves {
 public:
  struct Paths {
    std::string save, best;  ///< empty: not wanted
  };
  ParameterSaves(Paths paths, std::function<void(const std::string&)> notice);

  /// Writes the parameters. Parameters that are not finite go to PATH.nonfinite instead. Throws
  /// UserError where the file cannot be written.
  void save(Executor& executor);
  /// save() in the middle of training: only warns where the file cannot be written.
  void try_to_save(Executor& executor);
  /// Writes the parameters of the best epoch, as save() does. A later best epoch tries again.
  void save_best(Executor& executor);
  bool wants_best() const { return !paths_.best.empty(); }
  std::string best_path() const { return paths_.best; }
  /// After a best epoch: "saved PATH", or "not saved PATH".
  std::string best_text() const;

  /// At the end of training: throws UserError for parameters that are not finite, and for a best
  /// epoch that could not be written.
  void check(Executor& executor) const;

 private:
  std::string save_finite(Executor& executor, const std::string& path);
  void warn_once(const std::string& why, bool& warned) const;

  Paths paths_;
  std::function<void(const std::string&)> notice_;
  std::string written_best_;                           ///< the path that was written last
  std::string best_failure_;                           ///< why the best epoch was not written
  std::optional<std::vector<std::string>> nonfinite_;  ///< parameters, when they were last saved
  bool warned_of_best_ = false, warned_of_save_ = false;
};

}  // namespace fluid
