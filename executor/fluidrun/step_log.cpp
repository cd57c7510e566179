#include "executor/fluidrun/step_log.h"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "executor/launcher/print_to.h"
#include "ir/error.h"

namespace fluid {

namespace {

std::string text_of(const nlohmann::ordered_json& line) {
  return line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// The integer value of `key` in a JSON object; INT64_MAX if the object has no such integer.
int64_t integer_at(const nlohmann::json& line, const char* key) {
  const auto found = line.find(key);
  const bool is_integer = found != line.end() && found->is_number_integer();
  return is_integer ? found->get<int64_t>() : INT64_MAX;
}

/// Whether truncate_after() keeps a line. The line's step must be at most `last_step`. The epoch of
/// a validation or epoch line must also be at most `last_epoch`.
bool is_kept(const nlohmann::json& line, int64_t last_step, int64_t last_epoch) {
  if (!line.is_object()) return false;
  if (!line.contains("event")) return integer_at(line, "step") <= last_step;
  return integer_at(line, "steps") <= last_step && integer_at(line, "epoch") <= last_epoch;
}

/// Total bytes of the lines before the first line that truncate_after() removes.
int64_t kept_bytes(const std::string& path, int64_t last_step, int64_t last_epoch) {
  std::ifstream file(path);
  int64_t bytes = 0;
  for (std::string line; std::getline(file, line) && !file.eof();) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (!is_kept(json, last_step, last_epoch)) break;
    bytes += static_cast<int64_t>(line.size()) + 1;
  }
  return bytes;
}

std::string line_of(const StepEvent& step) {
  nlohmann::ordered_json line = {{"epoch", step.epoch}, {"step", step.step}};
  if (!step.recipe.empty()) line["recipe"] = step.recipe;
  for (const auto& [name, value] : scalar_outputs(step.outputs)) line[name] = value;
  line["lr"] = step.learning_rate;
  if (step.loss_scaling) line["loss_scale"] = step.loss_scaling->scale;
  line["skipped"] = step.skipped;
  line["step_ms"] = step.ms;
  return text_of(line);
}

nlohmann::ordered_json event_line(const char* event, const EpochEvent& epoch,
                                  const NamedScalars& values) {
  nlohmann::ordered_json line = {{"event", event}, {"epoch", epoch.epoch}, {"steps", epoch.steps}};
  for (const auto& [name, value] : values) line[name] = value;
  return line;
}

}  // namespace

StepLog::StepLog(const std::string& path)
    : path_(path), file_(path.empty() ? nullptr : std::make_unique<AppendFile>(path)) {}

void StepLog::truncate_after(int64_t last_step, int64_t last_epoch) {
  if (file_) file_->truncate(last_step > 0 ? kept_bytes(path_, last_step, last_epoch) : 0);
}

void StepLog::append(int64_t step, const std::string& line) {
  if (!file_ || !failure_.empty()) return;
  try {
    file_->append(line + "\n");
  } catch (const UserError& e) {
    const std::string why = fmt::format("--log-json: {}", e.what());
    failure_ = fmt::format("{} (at step {})", why, step);
    print_to(stderr, "{}; training continues without it\n", why);
  }
}

void StepLog::append(const StepEvent& step) {
  if (file_) append(step.step, line_of(step));
}

void StepLog::append(const EpochEvent& epoch) {
  if (!file_) return;
  if (!epoch.validation.empty()) {
    append(epoch.steps, text_of(event_line("validation", epoch, epoch.validation)));
  }
  nlohmann::ordered_json line = event_line("epoch", epoch, epoch.training);
  line["complete"] = epoch.complete;
  line["best"] = epoch.best;
  line["step_ms"] = epoch.ms_per_step;
  line["seconds"] = epoch.seconds;
  append(epoch.steps, text_of(line));
}

void StepLog::throw_if_failed() const {
  if (!failure_.empty()) throw UserError(failure_);
}

}  // namespace fluid
