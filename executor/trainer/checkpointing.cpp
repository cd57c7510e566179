#include "executor/fluidrun/checkpointing.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>

#include "executor/checkpoint/checkpoint_file.h"
#include "executor/executor.h"
#include "executor/fluidrun/common.h"
#include "executor/fluidrun/print_to.h"
#include "executor/options/changes.h"
#include "ir/error.h"
#include "ir/number.h"

namespace fluid {
namespace {

constexpr std::string_view kMinutes = "min";

/// "10min" as 10; absent for what ends otherwise, or in no positive number.
std::optional<double> minutes_in(std::string_view text) {
  if (!text.ends_with(kMinutes)) return std::nullopt;
  text.remove_suffix(kMinutes.size());
  const auto minutes = number_in<double>(text);
  return minutes && *minutes > 0 && std::isfinite(*minutes) ? minutes : std::nullopt;
}

std::string must_be_interval(const std::string& text) {
  const bool good = minutes_in(text) || must_be_count(text).empty();
  return good ? "" : "must be a number of steps (500) or of minutes (10min), not " + text;
}

void check_flags(const CheckpointFlags& flags) {
  if (!flags.directory.empty()) return;
  const char* flag = flags.resume           ? "--resume"
                     : !flags.every.empty() ? "--checkpoint-every"
                     : flags.keep           ? "--keep"
                                            : nullptr;
  if (flag != nullptr) throw UserError(fmt::format("{} needs --checkpoint-dir", flag));
}

}  // namespace

void add_checkpoint_flags(CLI::App& command, CheckpointFlags& flags) {
  command.add_option("--checkpoint-dir", flags.directory,
                     "write checkpoints here: all that training goes on from");
  command
      .add_option("--checkpoint-every", flags.every,
                  "so many steps (500) or minutes (10min), instead of each epoch's end")
      ->check(must_be_interval);
  command.add_option("--keep", flags.keep, "checkpoints to keep, besides the best; 3 if not said")
      ->check(must_be_count);
  command.add_flag("--resume", flags.resume,
                   "go on from the newest checkpoint in --checkpoint-dir, where there is one");
}

Checkpointing::Checkpointing(const CheckpointFlags& flags, bool leads, bool restarted)
    : on_(!flags.directory.empty()), leads_(leads) {
  check_flags(flags);
  if (!on_) return;
  each_epoch_ = flags.every.empty();
  minutes_ = minutes_in(flags.every).value_or(0);
  if (minutes_ == 0 && !each_epoch_) steps_ = *number_in<int64_t>(flags.every);
  if (!leads) return;
  checkpoints_ = std::make_unique<Checkpoints>(flags.directory,
                                               CheckpointOptions{.keep = flags.keep.value_or(3)});
  const bool resumes = flags.resume || restarted;
  if (!resumes && !checkpoints_->empty()) {
    throw UserError(
        fmt::format("'{}' holds checkpoints: --resume goes on from them; a new run needs a "
                    "directory of its own",
                    flags.directory));
  }
  if (!resumes) return;
  from_ = newest_checkpoint(flags.directory);
  if (!from_) {
    print_to(stderr, "no checkpoint in {}: training begins\n", flags.directory);
    return;
  }
  for (const std::string& why : from_->passed_over) print_to(stderr, "passed over {}\n", why);
  if (from_->best) checkpoints_->mark_best(from_->path);
}

void Checkpointing::share(Executor& executor) {
  const std::string text = executor.share(from_ ? text_of(from_->state) : "");
  if (!text.empty()) state_ = training_state_in(text);
}

std::optional<std::string> Checkpointing::option(const std::string& name) const {
  if (!from_) return std::nullopt;
  return from_->snapshot.options.at(name);
}

std::map<std::string, std::string> Checkpointing::decisions() const {
  return from_ ? from_->snapshot.decisions : std::map<std::string, std::string>();
}

void Checkpointing::seek(Reader& reader) const {
  if (!state_) return;
  const int64_t in_epoch =
      std::min(state_->position - state_->epochs * state_->samples, reader.samples());
  reader.seek(state_->epochs * reader.samples() + in_epoch);
}

void Checkpointing::restore(Executor& executor,
                            const std::map<std::string, std::string>& loop_options, int64_t epochs,
                            bool alone) {
  last_ = {state_->steps, state_->epochs};
  written_ = Clock::now();
  if (leads_) {
    std::string changed = alone ? executor.restore(std::move(from_->snapshot), from_->path)
                                : executor.restore(from_->snapshot, from_->path);
    const std::string loop = changes(state_->options, loop_options);
    if (!changed.empty() && !loop.empty()) changed += ", ";
    changed += loop;
    const bool over = state_->epochs >= epochs;
    print_to(stderr, "going on from {}: step {} {} epoch {}\n", from_->path, state_->steps,
             over ? "after" : "in", state_->epochs + (over ? 0 : 1));
    if (!changed.empty()) {
      print_to(stderr, "results differ from those of a single run: {}\n", changed);
    }
  }
  executor.broadcast();
  executor.scatter(from_ ? &from_->snapshot : nullptr);
  if (from_) from_->snapshot = {};
}

void Checkpointing::pass_over(const std::string& parameters) const {
  if (!parameters.empty() && leads_) {
    print_to(stderr, "--params is not read: {} is\n", from_->path);
  }
}

bool Checkpointing::wants(int64_t steps, bool asked) const {
  if (!on()) return false;
  const std::chrono::duration<double, std::ratio<60>> since = Clock::now() - written_;
  return asked || (steps_ > 0 && steps % steps_ == 0) ||
         (leads_ && minutes_ > 0 && since.count() >= minutes_);
}

void Checkpointing::save(Executor& executor, const TrainingState& state, bool best,
                         const std::function<void(const UserError&)>& not_written) {
  const std::pair now(state.steps, state.epochs);
  due_ = false;
  if (now == last_) return;
  const Snapshot snapshot = executor.snapshot();
  executor.lead([&] {
    try {
      checkpoints_->save(snapshot, state, best);
    } catch (const UserError& e) {
      not_written(e);
      throw;
    }
  });
  last_ = now;
  written_ = Clock::now();
}

}  // namespace fluid
