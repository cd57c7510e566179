#include "executor/trainer/tensorboard.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <optional>
#include <system_error>
#include <utility>

#include "executor/comm/process_group.h"
#include "executor/executor.h"
#include "executor/trainer/callbacks.h"
#include "executor/trainer/tensor_image.h"
#include "executor/trainer/tensorboard_record.h"
#include "frontend/name_pattern.h"
#include "frontend/named_values.h"
#include "frontend/recipe_parameters.h"
#include "ir/atomic_file.h"
#include "ir/error.h"
#include "ir/number.h"
#include "ops/source/kept_gradient.h"
#include "ops/source_kind.h"

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

/// Returns the path of a new event file. TensorBoard reads the files of a directory in the order of
/// their names. The new name therefore contains a later time than all existing names.
std::string new_file_path(const std::string& directory) {
  auto time = static_cast<int64_t>(unix_seconds());
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    time = std::max(time, time_in_name(entry.path().filename().string()) + 1);
  }
  return fmt::format("{}/{}{:010}.{}.{}", directory, kFilePrefix, time, host_name(), getpid());
}

std::vector<std::string> selected_parameters(const Executor& executor, const std::string& text) {
  const NamePattern pattern(text);
  const std::vector<std::string> all = executor.parameters();
  std::vector<std::string> selected;
  std::ranges::copy_if(all, std::back_inserter(selected),
                       [&](const std::string& name) { return pattern.selects(name); });
  if (!selected.empty() || all.empty()) return selected;
  throw UserError(fmt::format("TensorBoard histograms: '{}' selects no parameter{}", text,
                              pattern_suggestion(text, all)));
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

void TensorBoard::retain_gradients(Program& program) {
  if (board_.histograms_every == 0) return;
  const NamePattern pattern(board_.histograms_of);
  gradients_.clear();
  const ir::Graph& graph = program.ir().main();
  for (const auto& op : graph.ops) {
    const bool has_gradient = source_kind(*op) == SourceKind::parameter &&
                              op->attrs.get_or("trainable", true) &&
                              !op->attrs.get_or("sparse", false);
    if (has_gradient && pattern.selects(op->symbol)) {
      gradients_.emplace_back(op->symbol, recipes_that_train(graph, op->symbol));
    }
  }
  for (const auto& [name, recipes] : gradients_) retain_gradient(program, name, Loc());
}

void TensorBoard::attach(FitOptions& options, Executor& executor) {
  writes_ = executor.process_group().world().rank == 0;
  pending_.resize(writes_ ? pending_.size() : 0);
  if (!writes_) return;
  check_tensorboard_directory(directory_);
  notice_ = options.notice;
  append_callback(options.on_begin, [this](const BeginEvent& e) { begin(e); });
  append_callback(options.on_step, [this](const StepEvent& e) { add(e); });
  append_callback(options.on_epoch, [this](const EpochEvent& e) { add(e); });
  append_callback(options.on_end, [this] {
    if (!failure_.empty()) throw UserError(failure_);
  });
  if (board_.histograms_every > 0) {
    parameters_ = selected_parameters(executor, board_.histograms_of);
    append_callback(options.on_step, [this, &executor](const StepEvent& e) {
      if (e.step % board_.histograms_every == 0 && !e.skipped) add_histograms(e, executor);
    });
  }
  if (board_.images == 0) return;
  append_callback(options.on_epoch_begin, [this](int64_t) { epoch_begins_ = true; });
  append_callback(options.on_batch, [this](int64_t step, const Batch& batch) {
    if (!std::exchange(epoch_begins_, false)) return;
    for (const auto& [name, value] : batch.columns) add_samples("feed/" + name, value, step);
  });
  append_callback(options.on_step, [this](const StepEvent& e) {
    if (e.step_in_epoch != 1) return;
    for (const OutputView& o : e.outputs) add_samples("output/" + o.name, o.value, e.step);
  });
}

void TensorBoard::begin(const BeginEvent& begin) {
  failure_.clear();
  file_ = std::make_unique<AppendFile>(new_file_path(directory_));
  append(tensorboard_version_event(unix_seconds()));
  append(tensorboard_start_event(unix_seconds(), begin.steps + 1));
  for (const std::string& event : std::exchange(pending_, {})) append(event);
}

void TensorBoard::add_text(const std::string& tag, const std::string& text, int64_t step) {
  append(tensorboard_text_event(unix_seconds(), step, tag, text));
}

void TensorBoard::add_images(const std::string& tag, const Tensor& images, int64_t step) {
  if (!holds_images(images.shape())) {
    throw UserError(fmt::format(
        "TensorBoard images '{}' must be [N, channels, height, width] with 1, 3 or 4 channels, got "
        "{}",
        tag, images.str()));
  }
  write_images(tag, images, images.shape()[0], step);
}

void TensorBoard::add_samples(const std::string& tag, const Tensor& value, int64_t step) {
  if (!holds_images(value.shape())) return;
  write_images(tag, value, std::min(value.shape()[0], board_.images), step);
}

void TensorBoard::write_images(const std::string& tag, const Tensor& images, int64_t count,
                               int64_t step) {
  for (int64_t i = 0; i < count; ++i) {
    append(tensorboard_image_event(unix_seconds(), step, fmt::format("{}/{}", tag, i),
                                   image_of(images, i)));
  }
}

void TensorBoard::add_histograms(const StepEvent& step, Executor& executor) {
  for (const std::string& name : parameters_) {
    add_histogram("parameter/" + name, executor.parameter(name), step.step);
  }
  for (const auto& [name, recipes] : gradients_) {
    if (!recipes.contains(step.recipe)) continue;
    add_histogram("gradient/" + name, executor.parameter(kept_gradient_name(name)), step.step);
  }
}

void TensorBoard::add_histogram(const std::string& tag, const Tensor& values, int64_t step) {
  if (const std::optional<Histogram> histogram = histogram_of(values)) {
    append(tensorboard_histogram_event(unix_seconds(), step, tag, *histogram));
  }
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
  if (!writes_ || !failure_.empty()) return;
  if (!file_) {
    pending_.push_back(event);
    return;
  }
  try {
    file_->append(tensorboard_record(event));
  } catch (const UserError& e) {
    failure_ = e.what();
    if (notice_) notice_(failure_ + "; training continues without it");
  }
}

}  // namespace fluid
