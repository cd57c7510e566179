#include "executor/trainer/divergence.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "ir/error.h"

namespace fluid {
namespace {

/// With a fixed loss scale, training fails after this number of consecutive skipped steps.
constexpr int64_t kMaxSkippedInARow = 100;

}  // namespace

DivergenceCheck::DivergenceCheck(Executor& executor, const LossScale& rule, const FitRecipe& recipe)
    : executor_(executor),
      rule_(rule),
      loss_(recipe.loss),
      lr_(recipe.lr),
      scaling_(executor.loss_scaling(recipe.name)) {}

bool DivergenceCheck::was_skipped(const OutputViews& outputs, int64_t step) {
  const std::optional<LossScaling> before = std::exchange(scaling_, outputs.loss_scaling());
  const bool skipped = scaling_ && scaling_->skipped > before->skipped;
  skipped_in_a_row_ = skipped ? skipped_in_a_row_ + 1 : 0;
  if (skipped) check_overflow(before->scale, step);
  return skipped;
}

void DivergenceCheck::check_overflow(double scale, int64_t step) const {
  if (!rule_.dynamic || rule_.backoff == 1) {
    if (skipped_in_a_row_ < kMaxSkippedInARow) return;
    throw UserError(
        fmt::format("gradients have overflowed in the {} steps up to step {}, with a loss scale "
                    "that stays at {:g}, and nothing is saved; try a smaller loss scale",
                    kMaxSkippedInARow, step, scale));
  }
  if (scale > static_cast<float>(rule_.floor)) return;
  throw_diverged(fmt::format("gradients overflow with a loss scale of {:g}", scale), step);
}

void DivergenceCheck::check_loss(const OutputViews& outputs, int64_t step) const {
  const bool bad = !loss_.empty() && std::isnan(outputs[loss_].item());
  if (bad) throw_diverged("'" + loss_ + "' is nan", step);
}

std::string DivergenceCheck::find_nonfinite_op(const Batch& batch, const OutputViews& outputs,
                                               int64_t step, bool skipped) {
  const double loss = loss_.empty() ? 0 : outputs[loss_].item();
  if (!skipped && std::isfinite(loss)) return "";
  std::string where = executor_.first_nonfinite(batch);
  if (where.empty()) where = "what each rank computes is finite, the sum over ranks is not";
  if (!skipped) throw_diverged(fmt::format("'{}' is {} ({})", loss_, loss, where), step);
  return where;
}

void DivergenceCheck::throw_diverged(const std::string& what, int64_t step) const {
  throw UserError(fmt::format(
      "{} at step {}: training diverged, and nothing is saved; where the data is as it should "
      "be, try a smaller learning rate than {:g}",
      what, step, lr_));
}

}  // namespace fluid
