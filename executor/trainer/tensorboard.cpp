#include "executor/trainer/tensorboard.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>

#include "executor/comm/process_group.h"
#include "executor/executor.h"
#include "executor/trainer/callbacks.h"
#include "executor/trainer/tensorboard_record.h"
#include "ir/atomic_file.h"
#include "ir/error.h"
#include "ir/number.h"

namespace fluid {
namespace {

constexpr std::string_view kFilePrefix = "events.out.tfevents.";

double unix_seconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

std::string host_name() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "localhost";
}

/// The time in the name of an event file; 0 for another file.
int64_t time_in_name(const std::string& name) {
  if (!name.starts_with(kFilePrefix)) return 0;
  const std::string_view rest = std::string_view(name).substr(kFilePrefix.size());
  return parse_number<int64_t>(rest.substr(0, rest.find('.'))).value_or(0);
}

/// The path of a new event file. TensorBoard reads the files of a directory in the order of their
/// names: the time in the name is the current time, or later than that of all other files.
std::string new_file_path(const std::string& directory) {
  auto time = static_cast<int64_t>(unix_seconds());
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    time = std::max(time, time_in_name(entry.path().filename().string()) + 1);
  }
  return fmt::format("{}/{}{:010}.{}.{}", directory, kFilePrefix, time, host_name(), getpid());
}

void append_with_prefix(NamedScalars& to, const std::string& prefix, const NamedScalars& values) {
  for (const auto& [name, value] : values) to.emplace_back(prefix + name, value);
}

}  // namespace

void check_tensorboard_directory(const std::string& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) throw UserError("cannot create '" + directory + "': " + error.message());
  check_writable(directory + "/" + std::string(kFilePrefix));
}

void TensorBoard::attach(FitOptions& options, Executor& executor) {
  if (executor.process_group().world().rank != 0) return;
  check_tensorboard_directory(directory_);
  notice_ = options.notice;
  append_callback(options.on_begin, [this](const BeginEvent& e) { begin(e); });
  append_callback(options.on_step, [this](const StepEvent& e) { add(e); });
  append_callback(options.on_epoch, [this](const EpochEvent& e) { add(e); });
  append_callback(options.on_end, [this] {
    if (!failure_.empty()) throw UserError(failure_);
  });
}

void TensorBoard::begin(const BeginEvent& begin) {
  failure_.clear();
  file_ = std::make_unique<AppendFile>(new_file_path(directory_));
  append(tensorboard_version_event(unix_seconds()));
  append(tensorboard_start_event(unix_seconds(), begin.steps + 1));
}

void TensorBoard::add(const StepEvent& step) {
  NamedScalars values;
  append_with_prefix(values, "step/", scalar_outputs(step.outputs));
  const std::string optimizer = "optimizer/" + (step.recipe.empty() ? "" : step.recipe + "/");
  values.emplace_back(optimizer + "learning_rate", step.learning_rate);
  if (step.loss_scaling) values.emplace_back(optimizer + "loss_scale", step.loss_scaling->scale);
  append(tensorboard_summary_event(unix_seconds(), step.step, values));
}

void TensorBoard::add(const EpochEvent& epoch) {
  NamedScalars values;
  append_with_prefix(values, "epoch/", epoch.training);
  append_with_prefix(values, "epoch/val_", epoch.validation);
  append(tensorboard_summary_event(unix_seconds(), epoch.steps, values));
}

void TensorBoard::append(const std::string& event) {
  if (!failure_.empty()) return;
  try {
    file_->append(tensorboard_record(event));
  } catch (const UserError& e) {
    failure_ = e.what();
    if (notice_) notice_(failure_ + "; training continues without it");
  }
}

}  // namespace fluid
