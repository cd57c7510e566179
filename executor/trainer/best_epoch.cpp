#include "executor/trainer/best_epoch.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/error.h"
#include "ir/near.h"
#include "passes/metrics.h"

namespace fluid {
namespace {

/// Returns the name of the first option that is set and needs validation data; null if there is
/// none.
const char* first_validation_option(const FitOptions& options) {
  return !options.best.empty()        ? "best"
         : options.patience           ? "patience"
         : !options.save_best.empty() ? "save_best"
                                      : nullptr;
}

}  // namespace

void check_scalar_output(const Program& program, const std::string& name,
                         const std::string& option) {
  std::vector<std::string> scalars;
  for (const ir::Output& o : program.ir().main().outputs) {
    if (is_metric(o.value) || o.value.shape().empty()) scalars.push_back(o.name);
  }
  if (std::ranges::find(scalars, name) != scalars.end()) return;
  throw UserError(fmt::format("{}: no scalar output has the name '{}'{}", option, name,
                              suggest_names(name, scalars)));
}

BestCriterion parse_best(const Program& program, const std::string& text,
                         const std::string& option) {
  const size_t colon = std::min(text.rfind(':'), text.size());
  const std::string output = text.substr(0, colon), direction = text.substr(colon);
  if (!direction.empty() && direction != ":min" && direction != ":max") {
    throw UserError(fmt::format("{0}: write {1}:min or {1}:max, not {2}", option, output, text));
  }
  check_scalar_output(program, output, option);
  const auto& outputs = program.ir().main().outputs;
  const auto found = std::ranges::find(outputs, output, &ir::Output::name);
  return {.output = output,
          .maximum = direction.empty() ? is_larger_better(found->value) : direction == ":max"};
}

BestEpoch::BestEpoch(const FitOptions& options, const Program& program, const std::string& loss)
    : patience_(options.patience) {
  const char* given = first_validation_option(options);
  if (options.validation == nullptr) {
    if (given != nullptr) throw UserError(fmt::format("{} needs validation data", given));
    return;
  }
  criterion_ = options.best.empty() ? BestCriterion{.output = loss}
                                    : parse_best(program, options.best, "best");
  if (criterion_.output.empty() && given != nullptr) {
    throw UserError(
        fmt::format("{} needs an output to compare (best): the loss is not an output", given));
  }
}

bool BestEpoch::update(int64_t epoch, const NamedScalars& validation) {
  if (criterion_.output.empty()) return false;
  const auto found =
      std::ranges::find(validation, criterion_.output, &std::pair<std::string, double>::first);
  check(found != validation.end(), "validation lacks the output that tells the best epoch");
  const double value = found->second;
  // The first value that is not NaN is the best so far. A NaN is never better.
  const bool better =
      best_ ? (criterion_.maximum ? value > best_->value : value < best_->value) : value == value;
  if (better) best_ = {.value = value, .epoch = epoch};
  return better;
}

bool BestEpoch::patience_exhausted(int64_t completed_epochs) const {
  if (!patience_) return false;
  const int64_t last_better = std::max(best_ ? best_->epoch : 0, monitored_since_);
  return completed_epochs - last_better >= *patience_;
}

std::string BestEpoch::description() const {
  if (!best_) return "";
  return fmt::format("val_{} {} in epoch {}", criterion_.output, format_scalar(best_->value),
                     best_->epoch);
}

std::string BestEpoch::criterion() const {
  return criterion_.output.empty() ? ""
                                   : criterion_.output + (criterion_.maximum ? ":max" : ":min");
}

}  // namespace fluid
