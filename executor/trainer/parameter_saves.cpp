#include "executor/fluidrun/training_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "executor/fluidrun/print_to.h"
#include "ir/error.h"

namespace fluid {
namespace {

void warn_once(const std::string& why, bool& warned) {
  if (!std::exchange(warned, true)) print_to(stderr, "{}; training goes on\n", why);
}

}  // namespace

TrainingFiles::TrainingFiles(Paths paths)
    : paths_(std::move(paths)), log_(paths_.log), best_path_(paths_.best) {}

template <class Append>
void TrainingFiles::append(int64_t step, const Append& append) {
  if (!log_failure_.empty()) return;
  try {
    append();
  } catch (const UserError& e) {
    const std::string why = fmt::format("--log-json: {}", e.what());
    log_failure_ = fmt::format("{} (at step {})", why, step);
    print_to(stderr, "{}; training goes on without it\n", why);
  }
}

void TrainingFiles::log(const LoggedStep& step, const Outputs& outputs) {
  append(step.step, [&] { log_.append(step, outputs); });
}

void TrainingFiles::log_validation(const LoggedEpoch& epoch) {
  append(epoch.steps, [&] { log_.append_validation(epoch); });
}

void TrainingFiles::log_epoch(const LoggedEpoch& epoch) {
  append(epoch.steps, [&] { log_.append_epoch(epoch); });
}

/// Returns the path that was written: a good file of that name is not replaced by parameters that
/// are not finite.
std::string TrainingFiles::save_finite(Executor& executor, const std::string& path) {
  nonfinite_ = executor.nonfinite_parameters();
  const std::string to = nonfinite_->empty() ? path : path + ".nonfinite";
  executor.save(to);
  return to;
}

void TrainingFiles::save(Executor& executor) {
  if (paths_.save.empty()) return;
  print_to(stderr, "saved {}\n", save_finite(executor, paths_.save));
}

void TrainingFiles::try_to_save(Executor& executor) {
  try {
    save(executor);
  } catch (const UserError& e) {
    warn_once(e.what(), warned_of_save_);
  }
}

void TrainingFiles::save_best(Executor& executor) {
  if (paths_.best.empty()) return;
  try {
    best_path_ = save_finite(executor, paths_.best);
    best_failure_.clear();
  } catch (const UserError& e) {
    best_failure_ = fmt::format("--save-best: {}", e.what());
    warn_once(best_failure_, warned_of_best_);
  }
}

std::string TrainingFiles::best_text() const {
  return (best_failure_.empty() ? "saved " : "not saved ") + best_path_;
}

void TrainingFiles::check(Executor& executor) const {
  std::vector<std::string> faults;
  const bool saved = !paths_.save.empty() && nonfinite_;  // at the end
  const auto names = saved ? *nonfinite_ : executor.nonfinite_parameters();
  if (!names.empty()) {
    faults.push_back(fmt::format("training ended with {} of {} parameters not finite, '{}' first",
                                 names.size(), executor.parameters().size(), names.front()));
  }
  for (const std::string& failure : {log_failure_, best_failure_}) {
    if (!failure.empty()) faults.push_back(failure);
  }
  if (!faults.empty()) throw UserError(fmt::format("{}", fmt::join(faults, "; ")));
}

}  // namespace fluid
