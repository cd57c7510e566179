#include "executor/trainer/fit_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "executor/comm/process_group.h"
#include "executor/trainer/inference.h"
#include "executor/trainer/required_columns.h"
#include "executor/trainer/signals.h"
#include "executor/trainer/with_averages.h"
#include "ir/error.h"

namespace fluid {
namespace {

ParameterSaver::Paths paths_on_rank_0(const FitOptions& options, const World& world) {
  if (world.rank != 0) return {};
  return {.save = options.save, .best = options.save_best};
}

}  // namespace

FitLoop::FitLoop(const Program& program, Executor& executor, Checkpointing& checkpointing,
                 TrainingProgress& progress, Reader& train, const FitOptions& options,
                 RecipeCycle cycle)
    : executor_(executor),
      group_(executor.process_group()),
      world_(group_.world()),
      checkpointing_(checkpointing),
      progress_(progress),
      train_(train),
      options_(options),
      cycle_(std::move(cycle)),
      program_(program),
      plateaus_(program, cycle_, options.validation != nullptr),
      best_(options, program, cycle_.loss()),
      saves_(paths_on_rank_0(options, world_), options.averages,
             [this](const std::string& text) { send_notice(text); }) {
  if (train.options().bad_records == BadRecords::drop) {
    throw UserError("BadRecords::drop changes the sizes of the batches: train with skip");
  }
  check_training_columns(program, cycle_, train.source());
  if (options.validation != nullptr) {
    check_evaluation_columns(program, options.validation->source());
  }
  const bool first = progress_.steps == 0 && progress_.epochs == 0;
  if (first) {
    for (const std::string& text : checkpointing_.notices()) send_notice(text);
    restore_progress();
  }
  prepare_steps();
  if (first) restore_checkpoint();
  update_column_table();
  resume_best_epoch();
  last_read_step_ = progress_.steps;
  const auto& amp = executor_.amp();
  for (const FitRecipe& recipe : cycle_.recipes()) {
    divergence_.emplace_back(executor_, amp ? amp->loss_scale : LossScale(), recipe);
  }
  check_equal_options();
}

void FitLoop::restore_progress() {
  const TrainingState* from = checkpointing_.resumed_state();
  if (from == nullptr) return;
  progress_.steps = from->steps;
  progress_.epochs = from->epochs;
  progress_.position = from->position;
  progress_.means.restore(from->output_statistics, world_.rank);
  progress_.best = from->best;
  progress_.best_criterion = from->best_criterion;
  progress_.monitored_since = from->monitored_since;
  progress_.recipe_steps = from->recipe_steps;
  if (!from->recipe_steps.empty()) return;
  for (size_t i = 0; i < cycle_.recipes().size(); ++i) {
    progress_.recipe_steps[cycle_.recipes()[i].name] = cycle_.steps_of(i, from->steps);
  }
}

/// Continues monitoring if earlier runs monitored the same output. Otherwise monitoring begins with
/// the next epoch.
void FitLoop::resume_best_epoch() {
  if (best_.criterion().empty()) return;
  const bool continues = progress_.best_criterion == best_.criterion();
  best_.resume(continues ? progress_.best : std::nullopt,
               continues ? progress_.monitored_since : progress_.epochs);
}

/// Copies the best epoch to the progress after a completed epoch. A run that monitors nothing keeps
/// the best epoch of earlier runs, but its epochs do not count for early stopping.
void FitLoop::record_best_epoch() {
  const bool monitors = !best_.criterion().empty();
  progress_.monitored_since = monitors ? best_.monitored_since() : progress_.epochs;
  if (!monitors) return;
  progress_.best = best_.best();
  progress_.best_criterion = best_.criterion();
}

/// Compiles the steps for all batch sizes of the readers before training. Only the step for the
/// last batch of a stream is compiled later.
void FitLoop::prepare_steps() {
  train_.seek(progress_.position);
  BatchSizes sizes{.train = train_.batch_sizes(),
                   .lengths = lengths_of(executor_, train_.source())};
  if (options_.validation == nullptr) return executor_.prepare(sizes);
  const std::vector<int64_t> eval = inference_batch_sizes(*options_.validation);
  const std::vector<int64_t> lengths = lengths_of(executor_, options_.validation->source());
  if (lengths == sizes.lengths) sizes.eval = eval;
  executor_.prepare(sizes);
  if (lengths != sizes.lengths) executor_.prepare({.eval = eval, .lengths = lengths});
}

/// Compiles the step for the last batch of a stream.
void FitLoop::prepare_last_batch(const Batch& batch) {
  if (!has_unprepared_size(train_, batch)) return;
  read_outputs();  // before prepare(), which may move the output buffers
  executor_.prepare({.train = {batch.size}, .lengths = executor_.lengths_of(batch)});
}

void FitLoop::restore_checkpoint() {
  if (checkpointing_.resumed_state() == nullptr) return;
  for (const std::string& text :
       checkpointing_.restore(executor_, result_options(), options_.epochs)) {
    send_notice(text);
  }
}

/// Gives the executor the column table of the training data, so that saves and checkpoints contain
/// the table. Notifies the user if the table of the resumed checkpoint differs.
void FitLoop::update_column_table() {
  const ColumnTablePtr table = train_.source().table();
  if (table == nullptr) return;
  const ColumnTablePtr before = executor_.column_table();
  if (checkpointing_.resumed_state() != nullptr && before != nullptr && *before != *table) {
    send_notice("the training data is read by another table of columns than before the checkpoint");
  }
  executor_.set_column_table(table);
}

/// Throws UserError if options differ between ranks. With different options, ranks would wait in
/// different collectives and time out.
void FitLoop::check_equal_options() {
  std::map<std::string, std::string> values = {
      {"epochs", std::to_string(options_.epochs)},
      {"max_steps", std::to_string(options_.max_steps)},
      {"recipes", cycle_.text()},
      {"best", best_.criterion()},
      {"patience", std::to_string(options_.patience.value_or(0))},
      {"averages", options_.averages ? "on" : "off"},
      {"checkpoints", checkpointing_.enabled() ? "on" : "off"}};
  group_.check_equal("number of samples", std::to_string(train_.samples().value_or(-1)));
  group_.check_equal("set of training options", values);
  const ColumnTablePtr table = train_.source().table();
  group_.check_equal("table of columns", table == nullptr ? "" : table->to_json());
}

History FitLoop::run() {
  try {
    run_epochs();
    finish_training();
  } catch (const DeviceError& e) {
    throw DeviceError(fmt::format("after step {}: {}", last_read_step_, e.what()));
  }
  progress_.position = train_.position();
  history_.steps = progress_.steps;
  history_.best = best_.best();
  history_.reason = stop_reason();
  return std::move(history_);
}

void FitLoop::run_epochs() {
  if (options_.on_begin) options_.on_begin({.steps = progress_.steps, .epochs = progress_.epochs});
  if (progress_.epochs >= options_.epochs || should_stop()) {
    send_notice(fmt::format("nothing to train: {} epochs and {} steps are done", progress_.epochs,
                            progress_.steps));
  }
  while (progress_.epochs < options_.epochs && !should_stop() &&
         !best_.patience_exhausted(progress_.epochs)) {
    EpochEvent epoch = run_epoch(progress_.epochs + 1);
    if (options_.on_epoch) options_.on_epoch(epoch);
    // A signal may have arrived during validation, and on_epoch may have called Trainer::stop().
    handle_requests();
    if (epoch.complete) {
      for (const std::string& text : plateaus_.update(epoch, executor_)) send_notice(text);
      finish_epoch(epoch);
    }
    history_.epochs.push_back(std::move(epoch));
  }
}

EpochEvent FitLoop::run_epoch(int64_t number) {
  EpochEvent epoch{.epoch = number, .epochs = options_.epochs, .rank = world_.rank};
  if (options_.on_epoch_begin) options_.on_epoch_begin(number);
  const Stopwatch watch;
  const int64_t steps_before = progress_.steps;
  run_steps(number);
  const auto steps = static_cast<double>(std::max<int64_t>(1, progress_.steps - steps_before));
  history_.training_seconds += watch.ms() / 1e3;
  epoch.ms_per_step = watch.ms() / steps;
  epoch.steps = progress_.steps;
  epoch.training = progress_.means.values_with_gathered_rows(group_);
  epoch.complete = epoch_ended(number) && !stopping_;
  if (options_.validation != nullptr && !stopping_) {
    // Seek, so that a resumed run reads the same validation epoch as an uninterrupted run.
    options_.validation->seek({number - 1, 0});
    epoch.validation = with_averages(executor_, options_.averages, [&] {
      return evaluate(executor_, *options_.validation, program_);
    });
  }
  epoch.best = epoch.complete && best_.update(number, epoch.validation);
  epoch.seconds = watch.ms() / 1e3;
  history_.seconds += epoch.seconds;
  return epoch;
}

/// Calls `next` and returns its result. If `next` throws UserError, reads the outputs of the
/// pending step before rethrowing, so that callbacks get these outputs before the error ends
/// training.
template <class Next>
auto FitLoop::read_outputs_on_error(Next next) {
  try {
    return next();
  } catch (const UserError&) {
    read_outputs();
    throw;
  }
}

void FitLoop::run_steps(int64_t epoch) {
  if (epoch_ended(epoch)) return;
  const int64_t global_batch = std::max<int64_t>(1, train_.batch_sizes().front()) * world_.size;
  int64_t step_in_epoch = (train_.position().sample + global_batch - 1) / global_batch;
  while (const Batch* batch = read_outputs_on_error([&] { return next_batch(train_, group_); })) {
    prepare_last_batch(*batch);
    if (options_.on_batch) options_.on_batch(progress_.steps + 1, *batch);
    if (!pending_step_) step_timer_ = Stopwatch();
    const size_t recipe = cycle_.recipe_index(progress_.steps);
    const OutputViews outputs =
        read_outputs_on_error([&] { return executor_.run(cycle_.recipes()[recipe].name, *batch); });
    SignalHandlers::set_training_started();
    ++progress_.recipe_steps[cycle_.recipes()[recipe].name];
    read_outputs();
    pending_step_ = PendingStep{
        recipe, epoch, ++progress_.steps, ++step_in_epoch, batch->global_size(), outputs, batch};
    if (!defers_output_reads()) read_outputs();
    handle_requests();
    // finish_epoch() writes a checkpoint that is due at the end of an epoch.
    const bool checkpoint_due = checkpointing_.due() && !epoch_ended(epoch);
    if (checkpoint_due || should_stop()) read_outputs();
    if (should_stop()) return;
    if (checkpoint_due) save_checkpoint();
  }
  read_outputs();
}

void FitLoop::read_outputs() {
  if (!pending_step_) return;
  const PendingStep step = *std::exchange(pending_step_, std::nullopt);
  const FitRecipe& recipe = cycle_.recipes()[step.recipe];
  DivergenceCheck& divergence = divergence_[step.recipe];
  const bool skipped = divergence.was_skipped(step.outputs, step.number);
  last_read_step_ = step.number;
  history_.samples += step.samples;
  if (!skipped) progress_.means.add(step.outputs, step.samples);
  if (options_.on_step) {
    options_.on_step({.recipe = recipe.name,
                      .epoch = step.epoch,
                      .step = step.number,
                      .step_in_epoch = step.step_in_epoch,
                      .samples = step.samples,
                      .learning_rate = step.outputs.learning_rate().value_or(recipe.lr),
                      .loss_scaling = divergence.scaling(),
                      .skipped = skipped,
                      .ms = step_timer_.ms(),
                      .outputs = step.outputs,
                      .means = progress_.means});
  }
  step_timer_ = Stopwatch();
  report_nonfinite_op(step, skipped);
  if (!skipped) divergence.check_loss(step.outputs, step.number);
}

void FitLoop::report_nonfinite_op(const PendingStep& step, bool skipped) {
  if (!executor_.checks_finite()) return;
  const std::string where =
      divergence_[step.recipe].find_nonfinite_op(*step.batch, step.outputs, step.number, skipped);
  if (skipped) send_notice(fmt::format("step {} skipped: {}", step.number, where));
}

void FitLoop::handle_requests() {
  const bool save = SignalHandlers::consume_save_request();
  const bool stop = SignalHandlers::stop_requested() || progress_.stop_called;
  FitRequests requests = {stop ? 1.0 : 0, save ? 1.0 : 0,
                          checkpointing_.rank_requests_checkpoint(progress_.steps, save) ? 1.0 : 0};
  group_.all_reduce(requests);
  stopping_ = requests[0] > 0;
  if (requests[2] > 0) checkpointing_.set_due();
  if (requests[1] == 0) return;
  read_outputs();
  group_.run_on_rank_0([&] { saves_.save_or_warn(executor_); });
}

void FitLoop::finish_epoch(const EpochEvent& epoch) {
  progress_.epochs = epoch.epoch;
  progress_.means.clear();
  record_best_epoch();
  if (epoch.best) group_.run_on_rank_0([&] { saves_.save_best(executor_); });
  if (checkpointing_.due_at_epoch_end() || (epoch.best && checkpointing_.enabled()))
    save_checkpoint(epoch.best);
}

/// Writes a checkpoint. If writing fails, saves the parameters to FitOptions::save and throws
/// UserError, which ends training.
void FitLoop::save_checkpoint(bool is_best) {
  checkpointing_.save(executor_, training_state(), is_best, [this](const UserError& failure) {
    try {
      saves_.save(executor_);
    } catch (const UserError& e) {
      throw UserError(fmt::format("{}; {}", failure.what(), e.what()));
    }
  });
}

void FitLoop::finish_training() {
  // If no step ran, training is not yet marked as started: a stop signal would end the process
  // during the saves below.
  SignalHandlers::set_training_started();
  if (checkpointing_.enabled()) save_checkpoint();
  if (is_rank_0()) {
    if (stopping_) send_notice(fmt::format("stopped after step {}", progress_.steps));
    report_loss_scales();
    saves_.save(executor_);
    report_best_epoch();
  }
  if (options_.on_end) options_.on_end();
  if (is_rank_0()) saves_.throw_if_failed(executor_);
}

void FitLoop::report_loss_scales() {
  for (size_t i = 0; i < divergence_.size(); ++i) {
    const auto& scaling = divergence_[i].scaling();
    if (!scaling) continue;
    const std::string& name = cycle_.recipes()[i].name;
    send_notice(fmt::format("{}loss scale {:g}; {} of {} steps skipped",
                            name.empty() ? "" : name + ": ", scaling->scale, scaling->skipped,
                            progress_.recipe_steps[name]));
  }
}

void FitLoop::report_best_epoch() {
  if (best_.patience_exhausted(progress_.epochs)) {
    send_notice(fmt::format("stopped after epoch {}: {} without a better one", progress_.epochs,
                            *options_.patience));
  }
  if (best_.best()) send_notice("best: " + best_.description());
  if (!saves_.has_best_path()) return;
  send_notice(best_.best() ? saves_.best_save_message()
                           : "no epoch came to its end: not saved " + saves_.best_path());
}

void FitLoop::send_notice(const std::string& text) const {
  if (is_rank_0() && options_.notice) options_.notice(text);
}

bool FitLoop::defers_output_reads() const {
  return executor_.place().kind == Place::Kind::cuda && !executor_.checks_finite();
}

bool FitLoop::epoch_ended(int64_t epoch) const { return train_.position().epoch >= epoch; }

bool FitLoop::should_stop() const {
  return stopping_ || (options_.max_steps > 0 && progress_.steps >= options_.max_steps);
}

/// Returns the options of fit() that affect results: option name -> value as text.
std::map<std::string, std::string> FitLoop::result_options() const {
  std::map<std::string, std::string> options = options_.labels;
  options["batch"] = std::to_string(train_.batch_sizes().front());
  options["world"] = std::to_string(world_.size);
  if (cycle_.recipes().size() > 1) options["recipes"] = cycle_.text();
  if (const std::string best = best_.criterion(); !best.empty()) options["best"] = best;
  return options;
}

TrainingState FitLoop::training_state() const {
  return {.steps = progress_.steps,
          .position = train_.position(),
          .epochs = progress_.epochs,
          .output_statistics = progress_.means.gathered_statistics(group_),
          .best = progress_.best,
          .best_criterion = progress_.best_criterion,
          .monitored_since = progress_.monitored_since,
          .recipe_steps = progress_.recipe_steps,
          .options = result_options()};
}

StopReason FitLoop::stop_reason() const {
  if (stopping_) return StopReason::stopped;
  if (options_.max_steps > 0 && progress_.steps >= options_.max_steps) return StopReason::max_steps;
  return best_.patience_exhausted(progress_.epochs) ? StopReason::patience : StopReason::epochs;
}

}  // namespace fluid
