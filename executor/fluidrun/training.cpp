#include "executor/fluidrun/training.h"

#include <fmt/format.h>

#include <future>
#include <optional>
#include <system_error>
#include <utility>

#include "executor/executor.h"
#include "executor/fluidrun/data_flags.h"
#include "executor/fluidrun/divergence.h"
#include "executor/fluidrun/epoch_table.h"
#include "executor/fluidrun/figures.h"
#include "executor/fluidrun/print_to.h"
#include "executor/fluidrun/progress.h"
#include "executor/fluidrun/resident.h"
#include "executor/fluidrun/signals.h"
#include "executor/fluidrun/train_report.h"
#include "executor/fluidrun/training_files.h"
#include "ir/error.h"
#include "ir/stopwatch.h"
#include "passes/check_recorded.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

/// The learning rate that training uses, after --lr.
double set_rate(Program& program, double lr) {
  ir::Op* train = find_directive(program.ir().main());
  if (train == nullptr) {
    check_not_compiled(program.ir());
    throw UserError("program '" + program.ir().name + "' cannot be trained: it minimizes nothing");
  }
  if (lr > 0) train->attrs.set("lr", lr);
  return train->attrs.get_or("lr", 0.0);
}

/// The name of the output that training minimizes; empty when the loss is no output.
std::string loss_output(const Program& program) {
  const ir::Graph& graph = program.ir().main();
  const ir::Op* train = find_directive(program.ir().main());
  for (const ir::Output& o : graph.outputs) {
    if (train != nullptr && o.value == train->operands.at(0)) return o.name;
  }
  return "";
}

std::optional<Reader> open_validation(const Program& program, const TrainFlags& flags,
                                      const World& world) {
  if (flags.val.empty()) return std::nullopt;
  return open_reader(program, flags.val, "test", flags.batch, {}, false, world);
}

/// In a thread of its own, where the system gives one; else when it is asked for.
template <class F>
auto meanwhile(F work) {
  try {
    return std::async(std::launch::async, work);
  } catch (const std::system_error&) {
    return std::async(std::launch::deferred, work);
  }
}

class Training {
 public:
  explicit Training(const TrainFlags& flags)
      : flags_(flags),
        world_(World::from_env()),
        files_(paths()),
        checkpointing_(flags.checkpoint, leads(), world_.restart > 0),
        program_(open_program(flags.program)),
        lr_(set_rate(program_, flags.lr)),
        loss_(loss_output(program_)),
        best_(flags.best, program_, loss_, !flags.val.empty()),
        val_opening_(meanwhile([&] { return open_validation(program_, flags, world_); })),
        reader_(open_reader(program_, flags.data, "train", flags.batch, flags.seed, flags.drop_last,
                            world_)),
        executor_(program_, place_of(flags.place, flags.verify_plan, world_.local_rank),
                  options()) {
    checkpointing_.share(executor_);
    checkpointing_.seek(reader_);
    Prepare sizes{.train = reader_.batch_sizes()};
    take_validation();
    if (val_) sizes.eval = val_->batch_sizes();
    std::erase(sizes.eval, 0);  // of a rank that has nothing of the last batch
    const TrainingState* from = checkpointing_.from();
    if (from == nullptr && leads()) {
      load_parameters(executor_, flags.params, flags.params_layout);
    }
    executor_.prepare(sizes);
    if (from != nullptr) go_on(*from);
    if (executor_.follows_plateau() && loss_.empty()) {
      throw UserError("the schedule 'plateau' follows the loss, which is no output");
    }
    files_.cut_log(steps_, epochs_);
    const auto& amp = executor_.amp();
    divergence_.emplace(executor_, amp ? amp->loss_scale : LossScale(), loss_, lr_);
    agree();
  }

  /// A failure says after which step it came.
  void run() {
    try {
      train();
    } catch (const DeviceError& e) {
      throw DeviceError(fmt::format("after step {}: {}", done_, e.what()));
    }
  }

 private:
  void train() {
    if (leads()) describe();
    if (leads() && (epochs_ >= flags_.epochs || finished())) {
      print_to(stderr, "nothing to train: {} epochs and {} steps are done\n", epochs_, steps_);
    }
    Progress progress(flags_.epochs, reader_.batches(), !leads());
    EpochTable table(flags_.epochs);
    while (epochs_ < flags_.epochs && !finished() && !best_.patience_ends(epochs_)) {
      const int64_t epoch = epochs_ + 1;
      const Stopwatch watch;
      const int64_t steps_before = steps_;
      progress.begin_epoch(epoch);
      take_steps(epoch, progress);
      const auto steps = static_cast<double>(std::max<int64_t>(1, steps_ - steps_before));
      const double ms = watch.ms() / steps;
      progress.clear();
      const bool complete = ended(epoch) && !stop_asked_;
      auto figures = figures_.values();
      LoggedEpoch logged{.epoch = epoch, .steps = steps_, .figures = figures};
      if (val_ && !stop_asked_) validate(figures);
      const bool best = complete && best_.take(epoch, figures);
      if (leads()) table.print(epoch, figures, ms, watch.ms() / 1e3, best);
      logged.complete = complete;
      logged.best = best;
      logged.ms_per_step = ms;
      logged.seconds = watch.ms() / 1e3;
      files_.log_epoch(logged);
      if (complete) {
        reduce_on_plateau(epoch, figures);
        close_epoch(epoch, best);
      }
    }
    Signals::training_begins();  // also where there was no step: what follows is to be saved whole
    if (checkpointing_.on()) checkpoint();
    finish();
    report_profile(executor_, flags_.profile, world_);
    if (leads()) files_.check(executor_);
  }

  /// Says and saves what came of it.
  void finish() {
    if (!leads()) return;
    if (stop_asked_) print_to(stderr, "stopped after step {}\n", steps_);
    if (const auto& scaling = divergence_->scaling()) {
      print_to(stderr, "loss scale {:g}; {} of {} steps skipped\n", scaling->scale,
               scaling->skipped, steps_);
    }
    files_.save(executor_);
    describe_best();
  }

  /// Whether this process is the one that says, saves and writes what all come to.
  bool leads() const { return world_.rank == 0; }

  TrainingFiles::Paths paths() const {
    if (!leads()) return {};
    return {.save = flags_.save, .best = flags_.best.save, .log = flags_.log_json};
  }

  /// What it throws, it throws before a precision is measured.
  ExecutorOptions options() {
    ExecutorOptions options =
        training_options(flags_.place, flags_.seed, reader_.batch_sizes().front());
    if (options.choose_amp) take_validation();
    if (const auto amp = checkpointing_.option("amp")) options.chosen_amp = precision_in(*amp);
    options.decisions = checkpointing_.decisions();
    set_world(options, flags_.world, world_);
    set_profile(options, flags_.profile);
    options.verify_plan = flags_.verify_plan;
    options.check_finite = flags_.check_finite;
    options.micro_batches = flags_.micro_batches;
    options.find_sample = [this](const std::string& feed, int64_t value) {
      return find_in(readers())(feed, value);
    };
    return options;
  }

  void take_validation() {
    if (!val_opening_.valid()) return;
    std::optional<Reader> val = val_opening_.get();
    if (!val) return;
    val_.emplace(std::move(*val));
    const int64_t shared = val_->dataset().rows_shared_with(reader_.dataset());
    if (shared > 0 && leads()) {
      print_to(stderr, "--val: {} of {} samples are also trained on\n", shared, val_->samples());
    }
  }

  /// Of ranks that were started with other flags, some would wait for the others without end.
  void agree() {
    executor_.agree("number of samples", std::to_string(reader_.samples()));
    executor_.agree("command line", {{"epochs", std::to_string(flags_.epochs)},
                                     {"max-steps", std::to_string(flags_.max_steps)},
                                     {"val", flags_.val},
                                     {"seed", std::to_string(flags_.seed)},
                                     {"best", best_.criterion()},
                                     {"patience", std::to_string(flags_.best.patience.value_or(0))},
                                     {"batch", std::to_string(flags_.batch)},
                                     {"data", flags_.data},
                                     {"drop-last", flags_.drop_last ? "on" : "off"},
                                     {"checkpoints", checkpointing_.on() ? "on" : "off"},
                                     {"checkpoint-every", flags_.checkpoint.every}});
  }

  void go_on(const TrainingState& from) {
    checkpointing_.restore(executor_, loop_options(), flags_.epochs,
                           world_.size == 1 && !flags_.world.force_collectives);
    steps_ = done_ = from.steps;
    epochs_ = from.epochs;
    figures_.set_sums(from.figures);
    if (from.options.contains("best") && from.options.at("best") == best_.criterion()) {
      best_.go_on(from.best);
    }
    checkpointing_.pass_over(flags_.params);
  }

  /// The options of the loop that change results.
  std::map<std::string, std::string> loop_options() const {
    std::map<std::string, std::string> options = {
        {"batch", std::to_string(reader_.batch_sizes().front())},
        {"world", std::to_string(world_.size)},
        {"data", flags_.data},
        {"drop-last", flags_.drop_last ? "on" : "off"}};
    if (const std::string best = best_.criterion(); !best.empty()) options["best"] = best;
    return options;
  }

  TrainingState state() const {
    return {.steps = steps_,
            .position = reader_.position(),
            .samples = reader_.samples(),
            .epochs = epochs_,
            .figures = figures_.sums(),
            .best = best_.best(),
            .options = loop_options()};
  }

  void checkpoint(bool best = false) {
    checkpointing_.save(executor_, state(), best,
                        [this](const UserError& e) { save_in_spite_of(e); });
  }

  /// Whether the data of an epoch, which may have begun before a checkpoint, has come to its end.
  bool ended(int64_t epoch) const { return reader_.position() >= epoch * reader_.samples(); }

  void reduce_on_plateau(int64_t epoch, const std::vector<std::pair<std::string, double>>& of) {
    const std::string name = (val_ ? "val_" : "") + loss_;
    const auto loss = std::ranges::find(of, name, &std::pair<std::string, double>::first);
    if (loss == of.end() || !executor_.reduce_on_plateau(loss->second)) return;
    if (!leads()) return;
    print_to(stderr, "{} has reached a plateau: the learning rate falls after epoch {}\n", name,
             epoch);
  }

  void close_epoch(int64_t epoch, bool best) {
    epochs_ = epoch;
    figures_.clear();
    if (best) executor_.lead([&] { files_.save_best(executor_); });
    if (checkpointing_.due_at_epoch() || (best && checkpointing_.on())) checkpoint(best);
  }

  void describe_best() const {
    if (best_.patience_ends(epochs_)) {
      print_to(stderr, "stopped after epoch {}: {} without a better one\n", epochs_,
               *flags_.best.patience);
    }
    if (best_.best()) print_to(stderr, "best: {}\n", best_.text());
    if (flags_.best.save.empty()) return;
    print_to(stderr, "{}\n",
             best_.best() ? files_.best_text()
                          : "no epoch came to its end: not saved " + flags_.best.save);
  }

  std::vector<const Reader*> readers() const {
    std::vector<const Reader*> readers = {&reader_};
    if (val_) readers.push_back(&*val_);
    return readers;
  }

  void describe() const {
    fluid::describe({program_, executor_, flags_, world_, readers(), before_, opened_});
  }

  bool finished() const {
    return stop_asked_ || (flags_.max_steps > 0 && steps_ >= flags_.max_steps);
  }

  /// A step that was begun, and what it is to the loop.
  struct TakenStep {
    int64_t epoch = 0, number = 0, in_epoch = 0, samples = 0;
    Outputs outputs;
    const Batch* batch = nullptr;  ///< for --check-finite: the reader's, until it is asked again
  };

  /// Whether steps go on by themselves: then what one came to is read when the next was begun.
  bool reads_late() const {
    return executor_.place().kind == Place::Kind::cuda && !flags_.check_finite;
  }

  /// What the step begun before came to, it came to before `next` fails.
  template <class Next>
  auto read_first(Progress& progress, Next next) {
    try {
      return next();
    } catch (const UserError&) {
      read_rest(progress);
      throw;
    }
  }

  void take_steps(int64_t epoch, Progress& progress) {
    if (ended(epoch)) return;
    const int64_t before = reader_.position() - epochs_ * reader_.samples();
    int64_t in_epoch = before * reader_.batches() / reader_.samples();
    while (const Batch* batch = read_first(progress, [&] { return reader_.next(); })) {
      if (!unread_) since_ = Stopwatch();
      const Outputs outputs = read_first(progress, [&] { return executor_.run(*batch); });
      Signals::training_begins();
      read_rest(progress);
      unread_ = TakenStep{epoch, ++steps_, ++in_epoch, batch->whole_size(), outputs, batch};
      if (!reads_late()) read_rest(progress);
      const bool asked = take_asked();
      const bool due = checkpointing_.due() && !ended(epoch);  // at the end once it is closed
      if (asked || due || finished()) read_rest(progress);
      if (asked) executor_.lead([&] { files_.try_to_save(executor_); });
      if (finished()) return;
      if (due) checkpoint();
    }
    read_rest(progress);
  }

  void read_rest(Progress& progress) {
    if (!unread_) return;
    const TakenStep step = *std::exchange(unread_, std::nullopt);
    const bool skipped = divergence_->was_skipped(step.outputs, step.number);
    done_ = step.number;
    const double lr = step.outputs.learning_rate().value_or(lr_);
    files_.log({step.epoch, step.number, lr, divergence_->scaling(), skipped, since_.ms()},
               step.outputs);
    since_ = Stopwatch();
    if (flags_.check_finite) explain_overflow(step, skipped, progress);
    if (!skipped) {
      figures_.add(step.outputs, step.samples);
      divergence_->check_loss(step.outputs, step.number);
    }
    progress.step({step.in_epoch, step.samples, lr, divergence_->scaling()},
                  [&] { return figures_.text(); });
  }

  /// Whether somebody asked to save, on any rank; to stop, and to write a checkpoint, which all
  /// must do after the same step.
  bool take_asked() {
    const bool save = Signals::take_save_asked();
    const bool checkpoint = checkpointing_.wants(steps_, save);
    Asked asked = {Signals::stop_asked() ? 1.0 : 0, save ? 1.0 : 0, checkpoint ? 1.0 : 0};
    executor_.add_up(asked);
    stop_asked_ = asked[0] > 0;
    if (asked[2] > 0) checkpointing_.set_due();
    return asked[1] > 0;
  }

  /// What was trained until then is not lost when something else cannot be written.
  void save_in_spite_of(const UserError& failure) {
    try {
      files_.save(executor_);
    } catch (const UserError& e) {
      throw UserError(fmt::format("{}; {}", failure.what(), e.what()));
    }
  }

  void explain_overflow(const TakenStep& step, bool skipped, Progress& progress) {
    const std::string where = divergence_->explain(*step.batch, step.outputs, step.number, skipped);
    if (!skipped || !leads()) return;
    progress.clear();
    print_to(stderr, "step {} skipped: {}\n", step.number, where);
  }

  void validate(std::vector<std::pair<std::string, double>>& to) {
    Figures figures;
    executor_.broadcast_recorded();  // rank 0's running statistics are the ones saved
    for (const Batch& batch : *val_) {
      if (batch.size > 0) figures.add_late(executor_.eval(batch), batch.size);
    }
    figures.catch_up();
    if (world_.size > 1) figures.add_up(executor_, output_names());
    files_.log_validation({epochs_ + 1, steps_, figures.values()});
    for (const auto& [name, value] : figures.values()) to.emplace_back("val_" + name, value);
  }

  std::vector<std::string> output_names() const {
    std::vector<std::string> names;
    for (const ir::Output& o : program_.ir().main().outputs) names.push_back(o.name);
    return names;
  }

  const TrainFlags& flags_;
  World world_;
  TrainingFiles files_;
  Checkpointing checkpointing_;
  Resident before_ = resident_now();
  Program program_;
  double lr_;
  std::string loss_;  ///< the output of that name
  BestEpoch best_;
  std::future<std::optional<Reader>> val_opening_;  // meanwhile the rest is read and compiled
  Reader reader_;
  Resident opened_ = resident_now();
  std::optional<Reader> val_;
  Executor executor_;
  Figures figures_;
  std::optional<Divergence> divergence_;
  std::optional<TakenStep> unread_;  ///< whose outputs nobody has looked at
  Stopwatch since_;                  ///< the last look, or the first step after it
  int64_t steps_ = 0, epochs_ = 0;   ///< begun, and over
  int64_t done_ = 0;                 ///< steps that are known to be
  bool stop_asked_ = false;
};

}  // namespace

int train(const TrainFlags& flags) {
  const Signals signals;
  Training(flags).run();
  return Signals::stop_asked() ? 128 + Signals::stop_signal() : 0;
}

}  // namespace fluid
