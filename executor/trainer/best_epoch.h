#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "executor/trainer/fit_options.h"
#include "frontend/program.h"

namespace fluid {

/// The best epoch by an output over the validation data, and whether training should stop because
/// no better one came for `patience` epochs.
class BestEpoch {
 public:
  /// `loss`: the output that training minimizes, or empty. Throws UserError for `best`, `patience`
  /// or `save_best` without validation, and for a `best` that names no scalar output.
  BestEpoch(const FitOptions& options, const Program& program, const std::string& loss);

  /// Takes the validation values of a complete epoch. Returns whether it is the best so far.
  bool take(int64_t epoch, const NamedScalars& validation);
  /// Whether the best epoch is at least `patience` epochs ago. `epochs`: number of completed
  /// epochs.
  bool patience_ends(int64_t epochs) const;
  /// "val_loss 0.1234 in epoch 3"; empty before the first best epoch.
  std::string text() const;
  /// "accuracy:max", for checkpoints; empty when no output is watched.
  std::string criterion() const;

  const std::optional<TrainingState::Best>& best() const { return best_; }
  void resume(const std::optional<TrainingState::Best>& best) { best_ = best; }

 private:
  std::string output_;  ///< empty: none is watched
  bool max_ = false;
  std::optional<int64_t> patience_;
  std::optional<TrainingState::Best> best_;
};

}  // namespace fluid
