#include "executor/fluidrun/step_log.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "executor/fluidrun/figures.h"

namespace fluid {
namespace {

/// The length of the lines up to that of step `last`.
int64_t step_log_bytes(const std::string& path, int64_t last) {
  std::ifstream file(path);
  int64_t bytes = 0;
  for (std::string line; std::getline(file, line) && !file.eof();) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    const bool step = json.is_object() && json.contains("step") && json["step"].is_number_integer();
    if (!step || json["step"].get<int64_t>() > last) break;
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
  return line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

StepLog::StepLog(const std::string& path)
    : path_(path), file_(path.empty() ? nullptr : std::make_unique<LineFile>(path)) {}

void StepLog::cut(int64_t last) {
  if (file_) file_->cut(last > 0 ? step_log_bytes(path_, last) : 0);
}

void StepLog::append(const LoggedStep& step, const Outputs& outputs) {
  if (file_) file_->append(line_of(step, outputs));
}

}  // namespace fluid
