#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "executor/executor.h"

namespace fluid {

/// Checks after each training step whether the step was skipped. Throws UserError when training has
/// diverged.
class Divergence {
 public:
  /// `loss`: the output that training minimizes, or empty. `lr`: the rate that messages advise to
  /// reduce.
  Divergence(Executor& executor, const LossScale& rule, std::string loss, double lr);

  /// Whether step `step` was skipped because its gradients overflowed. Steps come in order. Throws
  /// when a dynamic loss scale cannot fall any more, and for a fixed one after a hundred skipped
  /// steps in a row.
  bool was_skipped(const OutputViews& outputs, int64_t step);
  /// Throws when the loss is nan: all parameters are nan then, and stay so.
  void check_loss(const OutputViews& outputs, int64_t step) const;
  /// With ExecutorOptions::check_finite: the first op of a skipped step whose result is not finite;
  /// "" when the step was applied. Throws when the loss itself is not finite. Collective.
  std::string explain(const Batch& batch, const OutputViews& outputs, int64_t step, bool skipped);

  /// The loss scale after the last step passed to was_skipped().
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
