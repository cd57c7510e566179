#include "executor/fluidrun/divergence.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "ir/error.h"

namespace fluid {

Divergence::Divergence(Executor& executor, std::string loss, double lr)
    : executor_(executor), loss_(std::move(loss)), lr_(lr), scaling_(executor.loss_scaling()) {}

bool Divergence::was_skipped(int64_t step) {
  const std::optional<LossScaling> before = std::exchange(scaling_, executor_.loss_scaling());
  if (!scaling_ || scaling_->skipped == before->skipped) return false;
  if (before->scale <= LossScale().floor) {  // backing off no longer helps
    diverged(fmt::format("gradients overflow with a loss scale of {:g}", before->scale), step);
  }
  return true;
}

void Divergence::check_loss(const Outputs& outputs, int64_t step) const {
  const bool bad = !loss_.empty() && std::isnan(outputs[loss_].item());
  if (bad) diverged("'" + loss_ + "' is nan", step);
}

std::string Divergence::explain(const Batch& batch, const Outputs& outputs, int64_t step,
                                bool skipped) {
  const double loss = loss_.empty() ? 0 : outputs[loss_].item();
  if (!skipped && std::isfinite(loss)) return "";
  const std::string where = executor_.first_nonfinite(batch);
  if (!skipped) diverged(fmt::format("'{}' is {} ({})", loss_, loss, where), step);
  return where;
}

void Divergence::diverged(const std::string& what, int64_t step) const {
  throw UserError(fmt::format(
      "{} at step {}: training diverged, and nothing is saved; try a smaller --lr than {:g}", what,
      step, lr_));
}

}  // namespace fluid
