#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "executor/trainer/fit_options.h"
#include "frontend/program.h"

namespace fluid {

/// Throws UserError, whose message begins with `option`, unless `program` has a scalar output
/// called `name`.
void check_scalar_output(const Program& program, const std::string& name,
                         const std::string& option);

/// The scalar output that selects the best epoch.
struct BestCriterion {
  std::string output;
  bool maximum = false;  ///< whether its maximum or its minimum is best
};
/// Parses FitOptions::best, "accuracy:max" or "accuracy". Throws UserError, whose message begins
/// with `option`, unless `program` has such a scalar output.
BestCriterion parse_best(const Program& program, const std::string& text,
                         const std::string& option);

/// Tracks the epoch with the best value of a scalar output on the validation data, for early
/// stopping.
class BestEpoch {
 public:
  /// `loss`: name of the output that training minimizes; empty if the loss is not an output. Throws
  /// UserError if FitOptions::best, patience or save_best is set without validation data. Also
  /// throws if FitOptions::best names no scalar output.
  BestEpoch(const FitOptions& options, const Program& program, const std::string& loss);

  /// Records the scalar outputs on the validation data after epoch `epoch`. Returns whether the
  /// epoch is the best so far.
  bool update(int64_t epoch, const NamedScalars& validation);
  /// Whether early stopping ends training: no epoch of the last FitOptions::patience epochs before
  /// `completed_epochs` is the best. Epochs before monitored_since() do not count.
  bool patience_exhausted(int64_t completed_epochs) const;
  /// Describes the best epoch: "val_loss 0.1234 in epoch 3"; empty if no epoch is the best yet.
  std::string description() const;
  /// The name of the monitored output, and whether its maximum or minimum is best: "accuracy:max".
  /// Empty when no output is monitored.
  std::string criterion() const;

  const std::optional<TrainingState::BestValue>& best() const { return best_; }
  /// Number of completed epochs when monitoring by criterion() began.
  int64_t monitored_since() const { return monitored_since_; }
  /// Continues from an earlier run with the same criterion().
  void resume(const std::optional<TrainingState::BestValue>& best, int64_t monitored_since) {
    best_ = best;
    monitored_since_ = monitored_since;
  }

 private:
  BestCriterion criterion_;  ///< without an output: none is monitored
  std::optional<int64_t> patience_;
  std::optional<TrainingState::BestValue> best_;
  int64_t monitored_since_ = 0;
};

}  // namespace fluid
