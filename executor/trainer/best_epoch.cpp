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

BestEpoch::BestEpoch(const FitOptions& options, const Program& program, const std::string& loss)
    : patience_(options.patience) {
  const char* given = first_validation_option(options);
  if (options.validation == nullptr) {
    if (given != nullptr) throw UserError(fmt::format("{} needs validation data", given));
    return;
  }
  output_ = loss;
  if (!options.best.empty()) {
    const size_t colon = std::min(options.best.rfind(':'), options.best.size());
    const std::string direction = options.best.substr(colon);
    output_ = options.best.substr(0, colon);
    if (!direction.empty() && direction != ":min" && direction != ":max") {
      throw UserError(
          fmt::format("best: write {0}:min or {0}:max, not {1}", output_, options.best));
    }
    check_scalar_output(program, output_, "best");
    const auto& outputs = program.ir().main().outputs;
    const auto output = std::ranges::find(outputs, output_, &ir::Output::name);
    max_ = direction.empty() ? is_larger_better(output->value) : direction == ":max";
  }
  if (output_.empty() && given != nullptr) {
    throw UserError(
        fmt::format("{} needs an output to compare (best): the loss is not an output", given));
  }
}

bool BestEpoch::update(int64_t epoch, const NamedScalars& validation) {
  if (output_.empty()) return false;
  const auto found = std::ranges::find(validation, output_, &std::pair<std::string, double>::first);
  check(found != validation.end(), "validation lacks the output that tells the best epoch");
  const double value = found->second;
  // The first value that is not NaN is the best so far. A NaN is never better.
  const bool better = best_ ? (max_ ? value > best_->value : value < best_->value) : value == value;
  if (better) best_ = {.value = value, .epoch = epoch};
  return better;
}

bool BestEpoch::patience_exhausted(int64_t completed_epochs) const {
  return patience_ && completed_epochs - (best_ ? best_->epoch : 0) >= *patience_;
}

std::string BestEpoch::description() const {
  if (!best_) return "";
  return fmt::format("val_{} {} in epoch {}", output_, format_scalar(best_->value), best_->epoch);
}

std::string BestEpoch::criterion() const {
  return output_.empty() ? "" : output_ + (max_ ? ":max" : ":min");
}

}  // namespace fluid
