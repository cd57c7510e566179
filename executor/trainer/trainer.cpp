#include "executor/trainer/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

#include "executor/comm/process_group.h"
#include "executor/trainer/checkpointing.h"
#include "executor/trainer/fit_loop.h"
#include "executor/trainer/inference.h"
#include "executor/trainer/recipe_cycle.h"
#include "executor/trainer/required_columns.h"
#include "executor/trainer/signals.h"
#include "ir/error.h"
#include "passes/recipe.h"

namespace fluid {
namespace {

void check_averages(const Program& program, const FitOptions& options) {
  if (options.averages && !averages_parameters(program.ir().main())) {
    throw UserError("fit(): the recipe keeps no averages: set MinimizeOptions::ema or swa");
  }
}

}  // namespace

class Trainer::Impl {
 public:
  Impl(const Program& program, Place place, ExecutorOptions options,
       const CheckpointingOptions& checkpoints)
      : program(program.ir().clone()),
        checkpointing(checkpoints, options.distributed.world),
        executor(this->program, place, resumed_options(std::move(options))),
        progress{.means = RunningMeans(this->program.ir())} {
    checkpointing.broadcast_state(executor.process_group());
  }

  History fit(Reader& train, const FitOptions& options) {
    const RecipeCycle cycle(program, options.recipes);
    check_averages(program, options);
    std::optional<SignalHandlers> signals;
    if (options.handle_signals) signals.emplace();
    if (progress.steps > 0) SignalHandlers::set_training_started();
    progress.stop_called = false;
    readers = {&train, options.validation};
    return FitLoop(program, executor, checkpointing, progress, train, options, cycle).run();
  }

  Program program;
  Checkpointing checkpointing;
  /// readers of the current call; ExecutorOptions::find_sample searches their datasets
  std::vector<const Reader*> readers;
  Executor executor;
  TrainingProgress progress;

 private:
  ExecutorOptions resumed_options(ExecutorOptions options) {
    if (const auto amp = checkpointing.resumed_option("amp"))
      options.precision.chosen_amp = parse_precision(*amp);
    if (options.tuning_record.empty())
      options.tuning_record = checkpointing.resumed_tuning_choices();
    if (!options.find_sample) {
      options.find_sample = [this](const std::string& feed, int64_t value) {
        return make_sample_finder(readers)(feed, value);
      };
    }
    return options;
  }
};

Trainer::Trainer(const Program& program, Place place, ExecutorOptions options,
                 const CheckpointingOptions& checkpoints)
    : impl_(std::make_unique<Impl>(program, place, std::move(options), checkpoints)) {}
Trainer::~Trainer() = default;
Trainer::Trainer(Trainer&&) noexcept = default;

History Trainer::fit(Reader& train, const FitOptions& options) {
  return impl_->fit(train, options);
}

void Trainer::stop() { impl_->progress.stop_called = true; }

NamedScalars Trainer::evaluate(Reader& data, const BatchObserver& on_batch) {
  check_evaluation_columns(impl_->program, data.source());
  impl_->readers = {&data};
  impl_->executor.prepare(
      {.eval = inference_batch_sizes(data), .lengths = lengths_of(impl_->executor, data.source())});
  return fluid::evaluate(impl_->executor, data, impl_->program, on_batch);
}

Dataset Trainer::predict(Reader& data) {
  impl_->readers = {&data};
  const std::vector<std::string> feeds = column_names(data.source());
  std::vector<std::string> rows = per_sample_outputs(impl_->program);
  for (const std::string& name : impl_->executor.omitted_outputs(feeds)) std::erase(rows, name);
  if (rows.empty()) {
    throw UserError("predict() needs an output with one row a sample that the data's columns give");
  }
  impl_->executor.prepare({.predict = inference_batch_sizes(data),
                           .predict_feeds = feeds,
                           .lengths = lengths_of(impl_->executor, data.source())});
  return predict_rows(impl_->executor, data, rows);
}

void Trainer::save(const std::string& path, const SaveOptions& options) {
  impl_->executor.process_group().run_on_rank_0([&] { impl_->executor.save(path, options); });
}

LoadReport Trainer::load(const std::string& path, const LoadOptions& options) {
  ProcessGroup& group = impl_->executor.process_group();
  LoadReport report;
  group.run_on_rank_0([&] { report = impl_->executor.load(path, options); });
  if (group.started()) impl_->executor.broadcast();
  return report;
}

bool Trainer::resumes() const { return impl_->checkpointing.resumed_state() != nullptr; }

std::string Trainer::resumed_path() const { return impl_->checkpointing.resumed_path(); }

Executor& Trainer::executor() { return impl_->executor; }

void check_fit_options(const Program& program, const FitOptions& options) {
  const RecipeCycle cycle(program, options.recipes);
  check_averages(program, options);
  BestEpoch(options, program, cycle.loss());
}

void print_epoch(const EpochEvent& epoch) {
  if (epoch.rank != 0) return;
  std::string line = fmt::format("epoch {}/{}", epoch.epoch, epoch.epochs);
  for (const auto& [name, value] : epoch.training) {
    line += fmt::format("  {} {}", name, format_scalar(value));
  }
  for (const auto& [name, value] : epoch.validation) {
    line += fmt::format("  val_{} {}", name, format_scalar(value));
  }
  line += epoch.best ? "  best\n" : "\n";
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fflush(stdout);
}

void print_notice(const std::string& text) {
  const std::string line = text + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace fluid
