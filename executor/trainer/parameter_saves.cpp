#include "executor/trainer/parameter_saves.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "ir/error.h"

namespace fluid {

ParameterSaves::ParameterSaves(Paths paths, std::function<void(const std::string&)> notice)
    : paths_(std::move(paths)), notice_(std::move(notice)), written_best_(paths_.best) {}

void ParameterSaves::warn_once(const std::string& why, bool& warned) const {
  if (!std::exchange(warned, true)) notice_(why + "; training continues");
}

/// Saves the parameters to `path`, or to `path` + ".nonfinite" if some are not finite, so that they
/// do not replace a good file. Returns the path of the file.
std::string ParameterSaves::save_finite(Executor& executor, const std::string& path) {
  nonfinite_ = executor.nonfinite_parameters();
  const std::string to = nonfinite_->empty() ? path : path + ".nonfinite";
  executor.save(to);
  return to;
}

void ParameterSaves::save(Executor& executor) {
  if (!paths_.save.empty()) notice_("saved " + save_finite(executor, paths_.save));
}

void ParameterSaves::try_to_save(Executor& executor) {
  try {
    save(executor);
  } catch (const UserError& e) {
    warn_once(e.what(), warned_of_save_);
  }
}

void ParameterSaves::save_best(Executor& executor) {
  if (paths_.best.empty()) return;
  try {
    written_best_ = save_finite(executor, paths_.best);
    best_failure_.clear();
  } catch (const UserError& e) {
    best_failure_ = fmt::format("save_best: {}", e.what());
    warn_once(best_failure_, warned_of_best_);
  }
}

std::string ParameterSaves::best_text() const {
  return (best_failure_.empty() ? "saved " : "not saved ") + written_best_;
}

void ParameterSaves::check(Executor& executor) const {
  std::vector<std::string> faults;
  const bool saved = !paths_.save.empty() && nonfinite_;  // at the end
  const auto names = saved ? *nonfinite_ : executor.nonfinite_parameters();
  if (!names.empty()) {
    faults.push_back(fmt::format("training ended with {} of {} parameters not finite, '{}' first",
                                 names.size(), executor.parameters().size(), names.front()));
  }
  if (!best_failure_.empty()) faults.push_back(best_failure_);
  if (!faults.empty()) throw UserError(fmt::format("{}", fmt::join(faults, "; ")));
}

}  // namespace fluid
