#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "executor/executor.h"

namespace fluid {

/// Looks after each training step whether it was skipped, and whether training has diverged: that
/// is a UserError.
class Divergence {
 public:
  /// `loss`: the output that training minimizes, or empty. `lr`: what messages advise less than.
  Divergence(Executor& executor, const LossScale& rule, std::string loss, double lr);

  /// Whether step `step`, the next to be looked at, was not applied because its gradients
  /// overflowed. Throws when the loss scale cannot fall any more; when it never falls, after a
  /// hundred such steps in a row.
  bool was_skipped(const Outputs& outputs, int64_t step);
  /// Throws when the loss is nan: all parameters are nan then, and stay so.
  void check_loss(const Outputs& outputs, int64_t step) const;
  /// With --check-finite: where a step that was not applied met its first number that is not
  /// finite; "" when it was applied. Throws when it was the loss.
  std::string explain(const Batch& batch, const Outputs& outputs, int64_t step, bool skipped);

  /// After the step that was looked at last.
  const std::optional<LossScaling>& scaling() const { return scaling_; }

 private:
  void check_overflow(double scale, int64_t step) const;
  [[noreturn]] void diverged(const std::string& what, int64_t step) const;

  Executor& executor_;
  LossScale rule_;
  std::string loss_;
  double lr_;
  std::optional<LossScaling> scaling_;
  int64_t skipped_in_a_row_ = 0;
};

}  // namespace fluid
