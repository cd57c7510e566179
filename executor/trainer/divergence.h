#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "executor/executor.h"
#include "executor/trainer/recipe_cycle.h"

namespace fluid {

/// Checks after each training step whether the update was skipped and whether training has
/// diverged. Throws UserError when training has diverged.
class DivergenceCheck {
 public:
  /// Checks the steps of `recipe`.
  DivergenceCheck(Executor& executor, const LossScale& rule, const FitRecipe& recipe);

  /// Whether the update of step `step` was skipped because its gradients overflowed. Must be called
  /// for every step of the recipe, in order. Throws when a dynamic loss scale has reached its lower
  /// limit, and after 100 skipped steps in a row with a fixed loss scale.
  bool was_skipped(const OutputViews& outputs, int64_t step);
  /// Throws when the loss is NaN, because the gradients of a NaN loss make the parameters NaN.
  void check_loss(const OutputViews& outputs, int64_t step) const;
  /// Collective. For a skipped step, describes the first op with a non-finite result. For an
  /// applied step, returns "" if the loss is finite, and throws otherwise. Requires
  /// DebugOptions::check_finite.
  std::string find_nonfinite_op(const Batch& batch, const OutputViews& outputs, int64_t step,
                                bool skipped);

  /// The loss scale and the number of skipped steps, as of the last call of was_skipped(); nullopt
  /// when the loss is not scaled.
  const std::optional<LossScaling>& scaling() const { return scaling_; }

 private:
  /// Must be called when the gradients of step `step` overflowed with loss scale `scale`. Throws
  /// UserError at the lowest loss scale, or after 100 consecutive skipped steps with a fixed loss
  /// scale.
  void check_overflow(double scale, int64_t step) const;
  [[noreturn]] void throw_diverged(const std::string& what, int64_t step) const;

  Executor& executor_;
  LossScale rule_;
  std::string loss_;
  double lr_;
  std::optional<LossScaling> scaling_;
  int64_t skipped_in_a_row_ = 0;
};

}  // namespace fluid
