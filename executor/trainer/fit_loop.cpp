#include "executor/trainer/fit_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "executor/comm/process_group.h"
#include "executor/trainer/inference.h"
#include "executor/trainer/signals.h"
#include "ir/error.h"

namespace fluid {
namespace {

ParameterSaves::Paths paths_on_rank_0(const FitOptions& options, const World& world) {
  if (world.rank != 0) return {};
  return {.save = options.save, .best = options.save_best};
}

}  // namespace

FitLoop::FitLoop(const Program& program, Executor& executor, Checkpointing& checkpointing,
                 Progression& progression, Reader& train, const FitOptions& options,
                 const std::string& loss, double lr)
    : executor_(executor),
      group_(executor.process_group()),
      world_(group_.world()),
      checkpointing_(checkpointing),
      at_(progression),
      train_(train),
      options_(options),
      loss_(loss),
      lr_(lr),
      output_names_(output_names(program)),
      best_(options, program, loss),
      saves_(paths_on_rank_0(options, world_), [this](const std::string& text) { notice(text); }) {
  if (executor_.follows_plateau() && loss_.empty()) {
    throw UserError("the schedule 'plateau' monitors the loss, which is not an output");
  }
  const bool first = at_.steps == 0 && at_.epochs == 0;
  if (first) {
    for (const std::string& text : checkpointing_.notices()) notice(text);
    take_checkpoint();
  }
  prepare();
  if (first) restore();
  if (at_.best_criterion == best_.criterion()) best_.resume(at_.best);
  done_ = at_.steps;
  const auto& amp = executor_.amp();
  divergence_.emplace(executor_, amp ? amp->loss_scale : LossScale(), loss_, lr_);
  check_equal_options();
}

void FitLoop::take_checkpoint() {
  const TrainingState* from = checkpointing_.resumed();
  if (from == nullptr) return;
  at_.steps = from->steps;
  at_.epochs = from->epochs;
  at_.in_epoch = from->position - from->epochs * from->samples;
  at_.means.set_sums(from->figures);
  if (const auto best = from->options.find("best"); best != from->options.end()) {
    at_.best = from->best;
    at_.best_criterion = best->second;
  }
}

/// Compiles the steps of every size that will come, so that no step of the loop compiles.
void FitLoop::prepare() {
  const int64_t samples = train_.samples();
  const int64_t position = at_.epochs * samples + std::min(at_.in_epoch, samples);
  if (train_.position() != position) train_.seek(position);
  Prepare sizes{.train = train_.batch_sizes()};
  if (options_.validation != nullptr) sizes.eval = inference_sizes(*options_.validation);
  executor_.prepare(sizes);
}

void FitLoop::restore() {
  if (checkpointing_.resumed() == nullptr) return;
  for (const std::string& text :
       checkpointing_.restore(executor_, result_options(), options_.epochs)) {
    notice(text);
  }
}

/// Throws UserError when ranks have different options, which would deadlock the collectives.
void FitLoop::check_equal_options() {
  std::map<std::string, std::string> values = {
      {"epochs", std::to_string(options_.epochs)},
      {"max_steps", std::to_string(options_.max_steps)},
      {"best", best_.criterion()},
      {"patience", std::to_string(options_.patience.value_or(0))},
      {"checkpoints", checkpointing_.on() ? "on" : "off"}};
  group_.check_equal("number of samples", std::to_string(train_.samples()));
  group_.check_equal("set of training options", values);
}

History FitLoop::run() {
  try {
    run_epochs();
    finish();
  } catch (const DeviceError& e) {
    throw DeviceError(fmt::format("after step {}: {}", done_, e.what()));
  }
  at_.in_epoch = train_.position() - at_.epochs * train_.samples();
  history_.steps = at_.steps;
  history_.best = at_.best;
  history_.reason = reason();
  return std::move(history_);
}

void FitLoop::run_epochs() {
  if (options_.on_begin) options_.on_begin({.steps = at_.steps, .epochs = at_.epochs});
  if (at_.epochs >= options_.epochs || finished()) {
    notice(fmt::format("nothing to train: {} epochs and {} steps are done", at_.epochs, at_.steps));
  }
  while (at_.epochs < options_.epochs && !finished() && !best_.patience_ends(at_.epochs)) {
    EpochEvent epoch = run_epoch(at_.epochs + 1);
    if (options_.on_epoch) options_.on_epoch(epoch);
    if (epoch.complete) {
      reduce_on_plateau(epoch);
      close_epoch(epoch);
    }
    history_.epochs.push_back(std::move(epoch));
    if (options_.on_epoch) poll_requests();  // on_epoch may have called stop()
  }
}

EpochEvent FitLoop::run_epoch(int64_t number) {
  EpochEvent epoch{.epoch = number, .epochs = options_.epochs, .rank = world_.rank};
  if (options_.on_epoch_begin) options_.on_epoch_begin(number);
  const Stopwatch watch;
  const int64_t steps_before = at_.steps;
  run_steps(number);
  const auto steps = static_cast<double>(std::max<int64_t>(1, at_.steps - steps_before));
  epoch.ms_per_step = watch.ms() / steps;
  epoch.steps = at_.steps;
  epoch.training = at_.means.values();
  epoch.complete = epoch_ended(number) && !stopping_;
  if (options_.validation != nullptr && !stopping_) {
    epoch.validation = evaluate(executor_, *options_.validation, output_names_);
  }
  epoch.best = epoch.complete && best_.take(number, epoch.validation);
  epoch.seconds = watch.ms() / 1e3;
  return epoch;
}

/// The outputs of the step before are read before an error of the next step ends training.
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
  const int64_t before = train_.position() - at_.epochs * train_.samples();
  int64_t in_epoch = before * train_.batches() / train_.samples();
  while (const Batch* batch = read_outputs_on_error([&] { return train_.next(); })) {
    if (!unread_) since_ = Stopwatch();
    const OutputViews outputs = read_outputs_on_error([&] { return executor_.run(*batch); });
    Signals::training_begins();
    read_outputs();
    unread_ = StartedStep{epoch, ++at_.steps, ++in_epoch, batch->global_size(), outputs, batch};
    if (!reads_late()) read_outputs();
    const bool save = poll_requests();
    const bool checkpoint_due = checkpointing_.due() && !epoch_ended(epoch);  // else close_epoch()
    if (save || checkpoint_due || finished()) read_outputs();
    if (save) group_.run_on_rank_0([&] { saves_.try_to_save(executor_); });
    if (finished()) return;
    if (checkpoint_due) checkpoint();
  }
  read_outputs();
}

void FitLoop::read_outputs() {
  if (!unread_) return;
  const StartedStep step = *std::exchange(unread_, std::nullopt);
  const bool skipped = divergence_->was_skipped(step.outputs, step.number);
  done_ = step.number;
  if (!skipped) at_.means.add(step.outputs, step.samples);
  if (options_.on_step) {
    options_.on_step({.epoch = step.epoch,
                      .step = step.number,
                      .step_in_epoch = step.in_epoch,
                      .samples = step.samples,
                      .learning_rate = step.outputs.learning_rate().value_or(lr_),
                      .loss_scaling = divergence_->scaling(),
                      .skipped = skipped,
                      .ms = since_.ms(),
                      .outputs = step.outputs,
                      .means = at_.means});
  }
  since_ = Stopwatch();
  explain_overflow(step, skipped);
  if (!skipped) divergence_->check_loss(step.outputs, step.number);
}

void FitLoop::explain_overflow(const StartedStep& step, bool skipped) {
  if (!executor_.checks_finite()) return;
  const std::string where = divergence_->explain(*step.batch, step.outputs, step.number, skipped);
  if (skipped) notice(fmt::format("step {} skipped: {}", step.number, where));
}

bool FitLoop::poll_requests() {
  const bool save = Signals::take_save_requested();
  const bool stop = Signals::stop_requested() || at_.stop_called;
  FitRequests requests = {stop ? 1.0 : 0, save ? 1.0 : 0,
                          checkpointing_.wants(at_.steps, save) ? 1.0 : 0};
  group_.all_reduce(requests);
  stopping_ = requests[0] > 0;
  if (requests[2] > 0) checkpointing_.set_due();
  return requests[1] > 0;
}

void FitLoop::reduce_on_plateau(const EpochEvent& epoch) {
  const bool validates = options_.validation != nullptr;
  const NamedScalars& values = validates ? epoch.validation : epoch.training;
  const auto loss = std::ranges::find(values, loss_, &std::pair<std::string, double>::first);
  if (loss == values.end() || !executor_.reduce_on_plateau(loss->second)) return;
  notice(fmt::format("{}{} has reached a plateau: the learning rate falls after epoch {}",
                     validates ? "val_" : "", loss_, epoch.epoch));
}

void FitLoop::close_epoch(const EpochEvent& epoch) {
  at_.epochs = epoch.epoch;
  at_.means.clear();
  at_.best = best_.best();
  at_.best_criterion = best_.criterion();
  if (epoch.best) group_.run_on_rank_0([&] { saves_.save_best(executor_); });
  if (checkpointing_.due_at_epoch() || (epoch.best && checkpointing_.on())) checkpoint(epoch.best);
}

/// Writes a checkpoint. If writing fails, saves the parameters and throws UserError, which ends the
/// training.
void FitLoop::checkpoint(bool best) {
  checkpointing_.save(executor_, state(), best, [this](const UserError& failure) {
    try {
      saves_.save(executor_);
    } catch (const UserError& e) {
      throw UserError(fmt::format("{}; {}", failure.what(), e.what()));
    }
  });
}

void FitLoop::finish() {
  Signals::training_begins();  // without a step, too: what follows is written whole
  if (checkpointing_.on()) checkpoint();
  if (is_rank_0()) {
    if (stopping_) notice(fmt::format("stopped after step {}", at_.steps));
    if (const auto& scaling = divergence_->scaling()) {
      notice(fmt::format("loss scale {:g}; {} of {} steps skipped", scaling->scale,
                         scaling->skipped, at_.steps));
    }
    saves_.save(executor_);
    report_best();
  }
  if (options_.on_end) options_.on_end();
  if (is_rank_0()) saves_.check(executor_);
}

void FitLoop::report_best() {
  if (best_.patience_ends(at_.epochs)) {
    notice(fmt::format("stopped after epoch {}: {} without a better one", at_.epochs,
                       *options_.patience));
  }
  if (best_.best()) notice("best: " + best_.text());
  if (!saves_.wants_best()) return;
  notice(best_.best() ? saves_.best_text()
                      : "no epoch came to its end: not saved " + saves_.best_path());
}

void FitLoop::notice(const std::string& text) const {
  if (is_rank_0() && options_.notice) options_.notice(text);
}

bool FitLoop::reads_late() const {
  return executor_.place().kind == Place::Kind::cuda && !executor_.checks_finite();
}

bool FitLoop::epoch_ended(int64_t epoch) const {
  return train_.position() >= epoch * train_.samples();
}

bool FitLoop::finished() const {
  return stopping_ || (options_.max_steps > 0 && at_.steps >= options_.max_steps);
}

/// The options of the loop that change results.
std::map<std::string, std::string> FitLoop::result_options() const {
  std::map<std::string, std::string> options = options_.labels;
  options["batch"] = std::to_string(train_.batch_sizes().front());
  options["world"] = std::to_string(world_.size);
  if (const std::string best = best_.criterion(); !best.empty()) options["best"] = best;
  return options;
}

TrainingState FitLoop::state() const {
  return {.steps = at_.steps,
          .position = train_.position(),
          .samples = train_.samples(),
          .epochs = at_.epochs,
          .figures = at_.means.sums(),
          .best = best_.best(),
          .options = result_options()};
}

StopReason FitLoop::reason() const {
  if (stopping_) return StopReason::stopped;
  if (options_.max_steps > 0 && at_.steps >= options_.max_steps) return StopReason::max_steps;
  return best_.patience_ends(at_.epochs) ? StopReason::patience : StopReason::epochs;
}

}  // namespace fluid
