#include "executor/fluidrun/step_log.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "executor/fluidrun/figures.h"

namespace fluid {
namespace {

std::string text_of(const nlohmann::ordered_json& line) {
  return line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// The integer `key` of a line, or more than any.
int64_t number_in_line(const nlohmann::json& line, const char* key) {
  const auto found = line.find(key);
  const bool there = found != line.end() && found->is_number_integer();
  return there ? found->get<int64_t>() : INT64_MAX;
}

/// Whether a line says what came to be no later than step `last` and the end of epoch `epochs`.
bool stays(const nlohmann::json& line, int64_t last, int64_t epochs) {
  if (!line.is_object()) return false;
  if (!line.contains("event")) return number_in_line(line, "step") <= last;
  return number_in_line(line, "steps") <= last && number_in_line(line, "epoch") <= epochs;
}

/// The length of the lines that stay.
int64_t step_log_bytes(const std::string& path, int64_t last, int64_t epochs) {
  std::ifstream file(path);
  int64_t bytes = 0;
  for (std::string line; std::getline(file, line) && !file.eof();) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (!stays(json, last, epochs)) break;
    bytes += static_cast<int64_t>(line.size()) + 1;
  }
  return bytes;
}

std::string line_of(const LoggedStep& step, const Outputs& outputs) {
  nlohmann::ordered_json line = {{"epoch", step.epoch}, {"step", step.step}};
  for (const auto& [name, value] : scalars(outputs)) line[name] = value;
  line["lr"] = step.lr;
  if (step.scaling) line["loss_scale"] = step.scaling->scale;
  line["skipped"] = step.skipped;
  line["step_ms"] = step.ms;
  return text_of(line);
}

nlohmann::ordered_json begun_line(const char* event, const LoggedEpoch& epoch) {
  nlohmann::ordered_json line = {{"event", event}, {"epoch", epoch.epoch}, {"steps", epoch.steps}};
  for (const auto& [name, value] : epoch.figures) line[name] = value;
  return line;
}

}  // namespace

StepLog::StepLog(const std::string& path)
    : path_(path), file_(path.empty() ? nullptr : std::make_unique<LineFile>(path)) {}

void StepLog::cut(int64_t last, int64_t epochs) {
  if (file_) file_->cut(last > 0 ? step_log_bytes(path_, last, epochs) : 0);
}

void StepLog::append(const LoggedStep& step, const Outputs& outputs) {
  if (file_) file_->append(line_of(step, outputs));
}

void StepLog::append_validation(const LoggedEpoch& epoch) {
  if (file_) file_->append(text_of(begun_line("validation", epoch)));
}

void StepLog::append_epoch(const LoggedEpoch& epoch) {
  if (!file_) return;
  nlohmann::ordered_json line = begun_line("epoch", epoch);
  line["complete"] = epoch.complete;
  line["best"] = epoch.best;
  line["step_ms"] = epoch.ms_per_step;
  line["seconds"] = epoch.seconds;
  file_->append(text_of(line));
}

}  // namespace fluid
