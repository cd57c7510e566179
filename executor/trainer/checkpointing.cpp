#include "executor/trainer/checkpointing.h"

#include <fmt/format.h>

#include "executor/checkpoint/checkpoint_file.h"
#include "executor/comm/process_group.h"
#include "executor/options/changes.h"
#include "ir/error.h"

namespace fluid {
namespace {

void check_options(const CheckpointingOptions& options) {
  if (options.every_steps < 0 || options.every_minutes < 0 || options.keep < 1) {
    throw UserError("checkpoints: every_steps and every_minutes are positive, keep is at least 1");
  }
  if (options.directory.empty() && options.resume) {
    throw UserError("checkpoints: resume needs a directory");
  }
}

}  // namespace

Checkpointing::Checkpointing(const CheckpointingOptions& options, const World& world)
    : options_(options),
      enabled_(!options.directory.empty()),
      saves_each_epoch_(options.every_steps == 0 && options.every_minutes == 0),
      is_rank_0_(world.rank == 0) {
  check_options(options);
  if (!enabled_ || !is_rank_0_) return;
  const std::string& directory = options.directory;
  directory_ =
      std::make_unique<CheckpointDirectory>(directory, CheckpointOptions{.keep = options.keep});
  const bool resumes = options.resume || world.restart > 0;
  if (!resumes && !directory_->empty()) {
    throw UserError(fmt::format(
        "'{}' holds checkpoints: set CheckpointingOptions::resume to continue from them, or use "
        "another directory for a new run",
        directory));
  }
  if (!resumes) return;
  resumed_ = newest_checkpoint(directory);
  if (!resumed_) {
    notices_.push_back(fmt::format("no checkpoint in {}: training begins", directory));
    return;
  }
  for (const std::string& why : resumed_->skipped_checkpoints)
    notices_.push_back("passed over " + why);
  directory_->restore_best_link(*resumed_);
}

void Checkpointing::broadcast_state(ProcessGroup& group) {
  const std::string text =
      group.broadcast_from_rank_0(resumed_ ? serialize_training_state(resumed_->state) : "");
  if (!text.empty()) state_ = parse_training_state(text);
}

std::optional<std::string> Checkpointing::resumed_option(const std::string& name) const {
  if (!resumed_) return std::nullopt;
  return resumed_->snapshot.options.at(name);
}

std::map<std::string, std::string> Checkpointing::resumed_tuning_choices() const {
  return resumed_ ? resumed_->snapshot.tuning_record : std::map<std::string, std::string>();
}

std::vector<std::string> Checkpointing::restore(Executor& executor,
                                                const std::map<std::string, std::string>& options,
                                                int64_t epochs) {
  last_saved_ = {state_->steps, state_->epochs};
  last_save_time_ = Clock::now();
  if (!is_rank_0_) {
    executor.restore({});
    return {};
  }
  std::string changed = executor.restore(std::move(resumed_->snapshot), resumed_->path);
  resumed_->snapshot = {};
  const std::string loop_changes = describe_changes(state_->options, options);
  if (!changed.empty() && !loop_changes.empty()) changed += ", ";
  changed += loop_changes;
  const bool over = state_->epochs >= epochs;
  std::vector<std::string> notices = {
      fmt::format("going on from {}: step {} {} epoch {}", resumed_->path, state_->steps,
                  over ? "after" : "in", state_->epochs + (over ? 0 : 1))};
  if (!changed.empty()) {
    notices.push_back("results differ from those of a single run: " + changed);
  }
  return notices;
}

bool Checkpointing::rank_requests_checkpoint(int64_t steps, bool requested) const {
  if (!enabled_) return false;
  const std::chrono::duration<double, std::ratio<60>> since_last_save =
      Clock::now() - last_save_time_;
  return requested || (options_.every_steps > 0 && steps % options_.every_steps == 0) ||
         (is_rank_0_ && options_.every_minutes > 0 &&
          since_last_save.count() >= options_.every_minutes);
}

void Checkpointing::save(Executor& executor, const TrainingState& state, bool best,
                         const std::function<void(const UserError&)>& on_failure) {
  const std::pair now(state.steps, state.epochs);
  due_ = false;
  if (now == last_saved_) return;
  const Snapshot snapshot = executor.snapshot();
  executor.process_group().run_on_rank_0([&] {
    try {
      directory_->save(snapshot, state, best);
    } catch (const UserError& e) {
      on_failure(e);
      throw;
    }
  });
  last_saved_ = now;
  last_save_time_ = Clock::now();
}

}  // namespace fluid
