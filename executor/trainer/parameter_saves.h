#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "executor/executor.h"

namespace fluid {

/// Writes the parameter files of Trainer::fit() on rank 0: the final parameters and the parameters
/// of the best epoch. If a file cannot be written during training, calls `notice` once per file. At
/// the end, save() and throw_if_failed() throw UserError.
class ParameterSaver {
 public:
  struct Paths {
    std::string save;  ///< file for the final parameters; empty: none
    std::string best;  ///< file for the parameters of the best epoch; empty: none
  };
  /// `averages`: whether to write the averages of the parameters (FitOptions::averages).
  ParameterSaver(Paths paths, bool averages, std::function<void(const std::string&)> notice);

  /// Writes the parameters to Paths::save, or to Paths::save + ".nonfinite" if some are not finite.
  /// Throws UserError when the file cannot be written.
  void save(Executor& executor);
  /// Like save(), for use during training: when the file cannot be written, calls `notice` instead
  /// of throwing.
  void save_or_warn(Executor& executor);
  /// Writes the parameters of the best epoch to Paths::best. When the file cannot be written, calls
  /// `notice` instead of throwing; the next call tries again.
  void save_best(Executor& executor);
  bool has_best_path() const { return !paths_.best.empty(); }
  std::string best_path() const { return paths_.best; }
  /// The outcome of the last save_best(), for the user: "saved PATH" or "not saved PATH".
  std::string best_save_message() const;

  /// Throws UserError when final parameters are not finite, or the last save_best() failed. Must be
  /// called at the end of training.
  void throw_if_failed(Executor& executor) const;

 private:
  std::string save_marking_nonfinite(Executor& executor, const std::string& path);
  /// Calls `notice` with `message` if `warned` is false, then sets `warned`.
  void warn_once(const std::string& message, bool& warned) const;

  Paths paths_;
  bool averages_;
  std::function<void(const std::string&)> notice_;
  std::string written_best_;  ///< path of the last file that save_best() wrote
  std::string best_failure_;  ///< error message of the last save_best(); empty: success
  /// Names of the non-finite parameters in the last save; nullopt before the first save.
  std::optional<std::vector<std::string>> nonfinite_;
  bool warned_of_best_ = false, warned_of_save_ = false;
};

}  // namespace fluid
