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
      on_(!options.directory.empty()),
      each_epoch_(options.every_steps == 0 && options.every_minutes == 0),
      is_rank_0_(world.rank == 0) {
  check_options(options);
  if (!on_ || !is_rank_0_) return;
  const std::string& directory = options.directory;
  checkpoints_ = std::make_unique<Checkpoints>(directory, CheckpointOptions{.keep = options.keep});
  const bool resumes = options.resume || world.restart > 0;
  if (!resumes && !checkpoints_->empty()) {
    throw UserError(fmt::format(
        "'{}' holds checkpoints: set resume (--resume) to continue from them, or use another "
        "directory for a new run",
        directory));
  }
  if (!resumes) return;
  from_ = newest_checkpoint(directory);
  if (!from_) {
    notices_.push_back(fmt::format("no checkpoint in {}: training begins", directory));
    return;
  }
  for (const std::string& why : from_->passed_over) notices_.push_back("passed over " + why);
  if (from_->best) checkpoints_->mark_best(from_->path);
}

void Checkpointing::broadcast_state(ProcessGroup& group) {
  const std::string text = group.broadcast_from_rank_0(from_ ? text_of(from_->state) : "");
  if (!text.empty()) state_ = training_state_in(text);
}

std::optional<std::string> Checkpointing::option(const std::string& name) const {
  if (!from_) return std::nullopt;
  return from_->snapshot.options.at(name);
}

std::map<std::string, std::string> Checkpointing::decisions() const {
  return from_ ? from_->snapshot.decisions : std::map<std::string, std::string>();
}

std::vector<std::string> Checkpointing::restore(Executor& executor,
                                                const std::map<std::string, std::string>& options,
                                                int64_t epochs) {
  last_ = {state_->steps, state_->epochs};
  written_ = Clock::now();
  if (!is_rank_0_) {
    executor.restore({});
    return {};
  }
  std::string changed = executor.restore(std::move(from_->snapshot), from_->path);
  from_->snapshot = {};
  const std::string of_loop = changes(state_->options, options);
  if (!changed.empty() && !of_loop.empty()) changed += ", ";
  changed += of_loop;
  const bool over = state_->epochs >= epochs;
  std::vector<std::string> notices = {fmt::format("going on from {}: step {} {} epoch {}",
                                                  from_->path, state_->steps, over ? "after" : "in",
                                                  state_->epochs + (over ? 0 : 1))};
  if (!changed.empty()) {
    notices.push_back("results differ from those of a single run: " + changed);
  }
  return notices;
}

bool Checkpointing::wants(int64_t steps, bool requested) const {
  if (!on()) return false;
  const std::chrono::duration<double, std::ratio<60>> since = Clock::now() - written_;
  return requested || (options_.every_steps > 0 && steps % options_.every_steps == 0) ||
         (is_rank_0_ && options_.every_minutes > 0 && since.count() >= options_.every_minutes);
}

void Checkpointing::save(Executor& executor, const TrainingState& state, bool best,
                         const std::function<void(const UserError&)>& on_failure) {
  const std::pair now(state.steps, state.epochs);
  due_ = false;
  if (now == last_) return;
  const Snapshot snapshot = executor.snapshot();
  executor.process_group().run_on_rank_0([&] {
    try {
      checkpoints_->save(snapshot, state, best);
    } catch (const UserError& e) {
      on_failure(e);
      throw;
    }
  });
  last_ = now;
  written_ = Clock::now();
}

}  // namespace fluid
