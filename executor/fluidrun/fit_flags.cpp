#include "executor/fluidrun/fit_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <string_view>

#include "executor/fluidrun/common.h"
#include "ir/error.h"
#include "ir/number.h"

namespace fluid {
namespace {

constexpr std::string_view kMinutes = "min";

/// "10min" as 10; absent for another ending, or without a positive number.
std::optional<double> minutes_in(std::string_view text) {
  if (!text.ends_with(kMinutes)) return std::nullopt;
  text.remove_suffix(kMinutes.size());
  const auto minutes = parse_number<double>(text);
  return minutes && *minutes > 0 && std::isfinite(*minutes) ? minutes : std::nullopt;
}

std::string must_be_interval(const std::string& text) {
  const bool good = minutes_in(text) || must_be_count(text).empty();
  return good ? "" : "must be a number of steps (500) or of minutes (10min), not " + text;
}

}  // namespace

void add_best_flags(CLI::App& command, BestFlags& flags) {
  command.add_option("--best", flags.output,
                     "the output over --val that tells the best epoch: accuracy:max, or loss:min; "
                     "by default the minimized loss");
  command
      .add_option("--patience", flags.patience, "stop after so many epochs without a better one")
      ->check(must_be_count);
  command.add_option("--save-best", flags.save,
                     "write the parameters of the best epoch here (safetensors)");
}

void set_best(FitOptions& options, const BestFlags& flags, bool validates) {
  const char* flag = !flags.output.empty() ? "--best"
                     : flags.patience      ? "--patience"
                     : !flags.save.empty() ? "--save-best"
                                           : nullptr;
  if (flag != nullptr && !validates) throw UserError(fmt::format("{} needs --val", flag));
  options.best = flags.output;
  options.patience = flags.patience;
  options.save_best = flags.save;
}

void add_checkpoint_flags(CLI::App& command, CheckpointFlags& flags) {
  command.add_option("--checkpoint-dir", flags.directory,
                     "write checkpoints here: all that training resumes from");
  command
      .add_option("--checkpoint-every", flags.every,
                  "so many steps (500) or minutes (10min), instead of each epoch's end")
      ->check(must_be_interval);
  command.add_option("--keep", flags.keep, "checkpoints to keep, besides the best; by default 3")
      ->check(must_be_count);
  command.add_flag("--resume", flags.resume,
                   "go on from the newest checkpoint in --checkpoint-dir, where there is one");
}

CheckpointingOptions checkpointing_options(const CheckpointFlags& flags) {
  const char* flag = flags.resume           ? "--resume"
                     : !flags.every.empty() ? "--checkpoint-every"
                     : flags.keep           ? "--keep"
                                            : nullptr;
  if (flags.directory.empty() && flag != nullptr) {
    throw UserError(fmt::format("{} needs --checkpoint-dir", flag));
  }
  const double minutes = minutes_in(flags.every).value_or(0);
  const bool by_steps = minutes == 0 && !flags.every.empty();
  return {.directory = flags.directory,
          .every_steps = by_steps ? *parse_number<int64_t>(flags.every) : 0,
          .every_minutes = minutes,
          .keep = flags.keep.value_or(3),
          .resume = flags.resume};
}

}  // namespace fluid
