#include "executor/fluidrun/best_epoch.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "executor/fluidrun/common.h"
#include "executor/fluidrun/figures.h"
#include "ir/error.h"
#include "passes/metrics.h"

namespace fluid {
namespace {

const char* first_given(const BestFlags& flags) {
  return !flags.output.empty() ? "--best"
         : flags.patience      ? "--patience"
         : !flags.save.empty() ? "--save-best"
                               : nullptr;
}

void check_figure(const Program& program, const std::string& name) {
  std::vector<std::string> figures;
  for (const ir::Output& o : program.ir().main().outputs) {
    if (is_metric(o.value) || o.value.shape().empty()) figures.push_back(o.name);
  }
  if (std::ranges::find(figures, name) != figures.end()) return;
  throw UserError(fmt::format("--best {}: no output of one number has this name{}", name,
                              did_you_mean(name, figures)));
}

}  // namespace

void add_best_flags(CLI::App& command, BestFlags& flags) {
  command.add_option("--best", flags.output,
                     "the figure of --val that tells the best epoch: accuracy:max, or loss:min; "
                     "without it, what is minimized");
  command
      .add_option("--patience", flags.patience, "stop after so many epochs without a better one")
      ->check(must_be_count);
  command.add_option("--save-best", flags.save,
                     "write the parameters of the best epoch here (safetensors)");
}

BestEpoch::BestEpoch(const BestFlags& flags, const Program& program, const std::string& loss,
                     bool validates)
    : patience_(flags.patience) {
  const char* given = first_given(flags);
  if (!validates) {
    if (given != nullptr) throw UserError(fmt::format("{} needs --val", given));
    return;
  }
  output_ = loss;
  if (!flags.output.empty()) {
    const size_t colon = std::min(flags.output.rfind(':'), flags.output.size());
    const std::string direction = flags.output.substr(colon);
    if (!direction.empty() && direction != ":min" && direction != ":max") {
      throw UserError(fmt::format("--best {}: write {}:min or {}:max", flags.output,
                                  flags.output.substr(0, colon), flags.output.substr(0, colon)));
    }
    output_ = flags.output.substr(0, colon);
    max_ = direction == ":max";
    check_figure(program, output_);
  }
  if (output_.empty() && given != nullptr) {
    throw UserError(fmt::format("{} needs --best OUTPUT: the loss is no output", given));
  }
}

bool BestEpoch::take(int64_t epoch, const std::vector<std::pair<std::string, double>>& figures) {
  if (output_.empty()) return false;
  const auto found =
      std::ranges::find(figures, "val_" + output_, &std::pair<std::string, double>::first);
  check(found != figures.end(), "the figures lack what tells the best epoch");
  const double figure = found->second;
  // A nan is better than nothing in neither direction.
  const bool better =
      best_ ? (max_ ? figure > best_->figure : figure < best_->figure) : figure == figure;
  if (better) best_ = {.figure = figure, .epoch = epoch};
  return better;
}

bool BestEpoch::patience_ends(int64_t epochs) const {
  return patience_ && epochs - (best_ ? best_->epoch : 0) >= *patience_;
}

std::string BestEpoch::text() const {
  if (!best_) return "";
  return fmt::format("val_{} {} in epoch {}", output_, figure_text(best_->figure), best_->epoch);
}

std::string BestEpoch::criterion() const {
  return output_.empty() ? "" : output_ + (max_ ? ":max" : ":min");
}

}  // namespace fluid
