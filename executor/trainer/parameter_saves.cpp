#include "executor/trainer/parameter_saves.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "executor/trainer/with_averages.h"
#include "ir/error.h"

namespace fluid {

ParameterSaver::ParameterSaver(Paths paths, bool averages,
                               std::function<void(const std::string&)> notice)
    : paths_(std::move(paths)),
      averages_(averages),
      notice_(std::move(notice)),
      written_best_(paths_.best) {}

void ParameterSaver::warn_once(const std::string& message, bool& warned) const {
  if (!std::exchange(warned, true)) notice_(message + "; training continues");
}

/// Saves the parameters to `path`, or to `path` + ".nonfinite" if some are not finite, so that an
/// older file at `path` is not overwritten. Returns the path of the written file.
std::string ParameterSaver::save_marking_nonfinite(Executor& executor, const std::string& path) {
  return with_averages(executor, averages_, [&] {
    nonfinite_ = executor.nonfinite_parameters();
    const std::string to = nonfinite_->empty() ? path : path + ".nonfinite";
    executor.save(to);
    return to;
  });
}

void ParameterSaver::save(Executor& executor) {
  if (!paths_.save.empty()) notice_("saved " + save_marking_nonfinite(executor, paths_.save));
}

void ParameterSaver::save_or_warn(Executor& executor) {
  try {
    save(executor);
  } catch (const UserError& e) {
    warn_once(e.what(), warned_of_save_);
  }
}

void ParameterSaver::save_best(Executor& executor) {
  if (paths_.best.empty()) return;
  try {
    written_best_ = save_marking_nonfinite(executor, paths_.best);
    best_failure_.clear();
  } catch (const UserError& e) {
    best_failure_ = fmt::format("save_best: {}", e.what());
    warn_once(best_failure_, warned_of_best_);
  }
}

std::string ParameterSaver::best_save_message() const {
  return (best_failure_.empty() ? "saved " : "not saved ") + written_best_;
}

void ParameterSaver::throw_if_failed(Executor& executor) const {
  std::vector<std::string> faults;
  // If Paths::save is set, save() has already searched the final parameters for non-finite values.
  const bool saved = !paths_.save.empty() && nonfinite_;
  const auto names = saved ? *nonfinite_ : executor.nonfinite_parameters();
  if (!names.empty()) {
    faults.push_back(fmt::format("training ended with {} of {} parameters not finite, '{}' first",
                                 names.size(), executor.parameters().size(), names.front()));
  }
  if (!best_failure_.empty()) faults.push_back(best_failure_);
  if (!faults.empty()) throw UserError(fmt::format("{}", fmt::join(faults, "; ")));
}

}  // namespace fluid
