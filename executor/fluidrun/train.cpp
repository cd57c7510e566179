// `fluidrun train`: sets the options of a Trainer from the flags and prints its events.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <system_error>
#include <utility>

#include "executor/checkpoint/checkpoint.h"
#include "executor/comm/process_group.h"
#include "executor/fluidrun/command.h"
#include "executor/fluidrun/dry_run.h"
#include "executor/fluidrun/help.h"
#include "executor/fluidrun/learning_rate_report.h"
#include "executor/fluidrun/overfit.h"
#include "executor/fluidrun/progress.h"
#include "executor/fluidrun/recipe_flags.h"
#include "executor/fluidrun/recipe_option.h"
#include "executor/fluidrun/step_log.h"
#include "executor/fluidrun/train_flags.h"
#include "executor/fluidrun/training_start.h"
#include "executor/launcher/print_to.h"
#include "executor/trainer/history_csv.h"
#include "executor/trainer/learning_rate_finder.h"
#include "executor/trainer/plateau_schedules.h"
#include "executor/trainer/recipe_cycle.h"
#include "executor/trainer/required_columns.h"
#include "executor/trainer/signals.h"
#include "executor/trainer/trainer.h"
#include "frontend/readers/spec.h"
#include "ir/atomic_file.h"
#include "ir/error.h"
#include "ops/optim/plateau.h"
#include "ops/optim/recipes.h"
#include "passes/recipe.h"

namespace fluid {
namespace {

void print_totals(const History& trained, bool validates) {
  const double rate = static_cast<double>(trained.samples) / trained.training_seconds;
  print_to(stderr, "trained on {} samples in {:.1f} s: {:.4g} samples/s{}\n", trained.samples,
           trained.training_seconds, rate,
           validates ? fmt::format("; {:.1f} s with validation", trained.seconds) : "");
}

/// Returns the state of the training run that this run resumes; all counts are 0 for a new run.
/// Only for programs with several recipes, whose numbers of steps depend on earlier cycles.
TrainingState resumed_recipes(const Program& program, const TrainFlags& flags, const World& world) {
  const std::string& directory = flags.checkpoint.directory;
  const bool resumes = !directory.empty() && (flags.checkpoint.resume || world.restart > 0);
  if (!resumes || recipe_names(program.ir().main()).size() < 2) return {};
  std::optional<Checkpoint> from = newest_checkpoint(directory);
  return from ? std::move(from->state) : TrainingState();
}

/// Applies the schedule of each --recipe-option. `steps`: total number of steps of all recipes.
/// `from`: result of resumed_recipes().
void set_schedules(Program& program, const TrainFlags& flags, std::optional<int64_t> steps,
                   const TrainingState& from) {
  if (flags.recipe_options.empty()) return;
  const RecipeCycle cycle(program, parse_recipes(program, flags.recipes));
  for (const RecipeOption& option : parse_recipe_options(program, flags.recipe_options)) {
    const auto found = std::ranges::find(cycle.recipes(), option.recipe(), &FitRecipe::name);
    if (found == cycle.recipes().end()) {
      throw UserError(fmt::format("{}: recipe '{}' is not in the cycle {}",
                                  option.command_line_text(), option.recipe(), cycle.text()));
    }
    const auto index = static_cast<size_t>(found - cycle.recipes().begin());
    option.set_schedule(program,
                        steps ? std::optional(cycle.steps_of(index, *steps, from)) : std::nullopt);
  }
}

/// Opens the program. Applies all flags that change recipes or parameters, except the schedule
/// flags.
Program open_with_recipe(const TrainFlags& flags) {
  Program program = open_program(flags.program, flags.params);
  set_optimizer(program, flags.optimizer);
  set_update(program, flags.update);
  for (const RecipeOption& option : parse_recipe_options(program, flags.recipe_options)) {
    if (flags.finds_lr()) option.check_sets_no_rate("--find-lr");
    option.set_optimizer(program);
  }
  set_parameters(program, flags.parameters);
  check_fit_options(program, {.recipes = parse_recipes(program, flags.recipes)});
  return program;
}

TensorBoard open_board(Program& program, const TrainFlags& flags) {
  TensorBoard board(flags.tensorboard, flags.tensorboard_options);
  board.retain_gradients(program);
  return board;
}

/// Returns the column table for reading the training data. A resumed run uses the table of its
/// newest checkpoint, if any. Otherwise, returns the table of --adapters or --params.
TrainingTable table_of_earlier_training(const TrainFlags& flags, const World& world) {
  const std::string& directory = flags.checkpoint.directory;
  if (has_table(flags.data) && (flags.checkpoint.resume || world.restart > 0)) {
    if (ColumnTablePtr table = newest_column_table(directory)) return {std::move(table), directory};
  }
  return training_table(flags.params, flags.data);
}

/// Whether training writes the table `learned` to its file.
bool writes_table(const TrainFlags& flags, const LearnedTable& learned) {
  return learned.of_training_rows && !flags.dry_run && !flags.finds_lr();
}

/// Sets `learned` as open_reader() does. Throws UserError if the table cannot be written later.
Reader open_training_data(const Program& program, const TrainFlags& flags, const World& world,
                          std::optional<LearnedTable>& learned) {
  Reader data =
      open_reader(program, flags.data, "train", flags.batch, flags.seed, flags.drop_last,
                  flags.reading, world, table_of_earlier_training(flags, world), &learned);
  if (learned && world.rank == 0) {
    const bool writes = writes_table(flags, *learned);
    if (writes) check_writable(learned->file);
    if (!writes && !learned->of_earlier_training) print_absent_table(*learned);
  }
  const RecipeCycle cycle(program, parse_recipes(program, flags.recipes));
  check_training_columns(program, cycle, data.source());
  if (flags.overfit == 0) return data;
  Reader first = read_first_samples(data, flags.overfit, flags.seed, world);
  if (*first.samples() < flags.overfit && world.rank == 0) {
    print_to(stderr, "--overfit {}: the data has {} samples\n", flags.overfit, *first.samples());
  }
  return first;
}

/// `table`: the table of the training data.
std::optional<Reader> open_validation(const Program& program, const TrainFlags& flags,
                                      const World& world, const TrainingTable& table,
                                      const std::stop_token& stop) {
  if (flags.val.empty()) return std::nullopt;
  Reader data = open_reader(program, flags.val, "val", flags.batch, {}, false, flags.reading, world,
                            table, nullptr, stop);
  check_evaluation_columns(program, data.source());
  return data;
}

/// Runs `work` on a new thread. If `later` is set or no thread can be started, defers `work` to
/// get() of the returned future.
template <class F>
auto in_background(F work, bool later) {
  try {
    return std::async(later ? std::launch::deferred : std::launch::async, work);
  } catch (const std::system_error&) {
    return std::async(std::launch::deferred, work);
  }
}

/// Requests a stop when it is destroyed.
class StopRequest {
 public:
  explicit StopRequest(std::stop_source source) : source_(std::move(source)) {}
  ~StopRequest() { source_.request_stop(); }
  StopRequest(const StopRequest&) = delete;

 private:
  std::stop_source source_;
};

/// Prints how many validation samples are also training samples. Prints nothing for a stream.
void print_shared_samples(const Reader& validation, const Reader& train) {
  if (validation.as_sample_source() == nullptr || train.as_sample_source() == nullptr) return;
  const int64_t shared = common_rows(*validation.as_sample_source(), *train.as_sample_source());
  if (shared == 0) return;
  print_to(stderr, "--val: {} of {} samples are also trained on\n", shared,
           validation.as_sample_source()->samples());
}

/// A run of `fluidrun train`. The constructor opens the inputs; run() trains.
class Training {
 public:
  explicit Training(const TrainFlags& flags)
      : flags_(flags),
        world_(World::from_env()),
        log_(is_rank_0() ? flags.log_json : ""),
        checkpoints_(checkpointing_options(flags.checkpoint)),
        program_(open_with_recipe(flags)),
        dump_(program_, flags.dump),
        board_(open_board(program_, flags)),
        opening_validation_(in_background(
            [&] {
              const bool uses_table = has_table(flags.val);
              return open_validation(program_, flags, world_,
                                     uses_table ? table_of_training_data() : TrainingTable(),
                                     stop_opening_.get_token());
            },
            has_table(flags.val))),
        train_(open_training_data(program_, flags, world_, learned_table_)),
        progress_({flags.epochs, train_.batches(), flags.log_every, !is_rank_0()}),
        table_(flags.epochs),
        trainer_(scheduled_program(), place_of(flags.place, flags.verify_plan, world_.local_rank),
                 options(), checkpoints_) {}

  void run() {
    wait_for_validation();
    if (!trainer_.resumes()) {
      load_parameters();
    } else if (is_rank_0()) {
      print_unread_files(flags_.params, trainer_.resumed_path());
    }
    if (flags_.finds_lr()) return find_learning_rate();
    FitOptions options = fit_options();
    if (flags_.dry_run) {
      check_fit_options(program_, options);
      dry_run(program_, trainer_, options, train_, world_);
      return print_all_skipped_records();
    }
    if (!flags_.tensorboard.empty()) {
      board_.add_text("program", "```\n" + program_.text() + "```");
      board_.attach(options, trainer_.executor());
    }
    HistoryCsv history(flags_.history);
    if (!flags_.history.empty()) history.attach(options, trainer_.executor());
    const History trained = flags_.overfit > 0
                                ? OverfitTest(program_, trainer_, train_).run(options)
                                : trainer_.fit(train_, options);
    if (is_rank_0() && trained.samples > 0) print_totals(trained, validation_.has_value());
    if (is_rank_0()) log_.throw_if_failed();
  }

 private:
  bool is_rank_0() const { return world_.rank == 0; }

  TrainingTable table_of_training_data() const {
    return {.table = train_.source().table(),
            .later_file = learned_table_ ? learned_table_->file : ""};
  }

  /// Writes a table that was learned for the FILE of option table=FILE. Called when training
  /// begins, so that no table is left of a run that does not.
  void write_learned_table() const {
    if (!learned_table_ || !writes_table(flags_, *learned_table_)) return;
    learned_table_->table->write(learned_table_->file);
    print_to(stderr, "wrote table {}\n", learned_table_->file);
  }

  /// Applies the schedule flags, or sets schedule `manual` for --find-lr. Returns the program. Last
  /// before the compilation.
  const Program& scheduled_program() {
    take_opened_validation();
    if (flags_.finds_lr()) {
      if (cycle().recipes().size() > 1) {
        throw UserError(
            "--find-lr finds the learning rate of one recipe: give --recipes NAME, not " +
            cycle().text());
      }
      set_schedule(program_, {.name = std::string(kManualSchedule), .settings = {}}, 0,
                   cycle().recipes().front().name);
      return program_;
    }
    set_schedule(program_, flags_.schedule, updates());
    check_lr_is_used(program_, flags_.optimizer);
    resumed_ = resumed_recipes(program_, flags_, world_);
    set_schedules(program_, flags_, updates(), resumed_);
    // The constructor of PlateauSchedules throws for a metric that is not an output. Here it throws
    // before the compilation.
    PlateauSchedules(program_, cycle(), !flags_.val.empty());
    return program_;
  }

  RecipeCycle cycle() const {
    return RecipeCycle(program_, parse_recipes(program_, flags_.recipes));
  }

  /// Number of training steps; nullopt for a stream without --max-steps.
  std::optional<int64_t> updates() const {
    std::optional<int64_t> updates;
    if (flags_.max_steps > 0) updates = flags_.max_steps;
    if (const std::optional<int64_t> batches = train_.batches()) {
      int64_t all = 0;
      if (__builtin_mul_overflow(flags_.epochs, *batches, &all)) all = INT64_MAX;
      updates = std::min(updates.value_or(all), all);
    }
    return updates;
  }

  ExecutorOptions options() {
    ExecutorOptions options =
        training_options(flags_.place, flags_.seed, train_.batch_sizes().front());
    options.length = length_of(program_, train_.source());
    if (options.precision.choose_amp) {  // validates the options before --amp auto times steps
      wait_for_validation();
      check_fit_options(program_, fit_options());
    }
    set_world(options, flags_.world, world_);
    set_profile(options, flags_.profile);
    options.debug.verify_plan = flags_.verify_plan;
    options.debug.check_finite = flags_.check_finite;
    options.micro_batches = flags_.micro_batches;
    return options;
  }

  /// Takes the validation data, with its errors, before the compilation, unless it is still opened
  /// in the background.
  void take_opened_validation() {
    if (!opening_validation_.valid()) return;
    const std::future_status status = opening_validation_.wait_for(std::chrono::seconds(0));
    if (status != std::future_status::timeout) wait_for_validation();
  }

  void wait_for_validation() {
    if (!opening_validation_.valid()) return;
    if (std::optional<Reader> opened = opening_validation_.get()) {
      validation_.emplace(std::move(*opened));
    }
  }

  void load_parameters() {
    const ParamsFlags& params = flags_.params;
    const bool adapts = !flags_.parameters.lora.empty();
    if (adapts && params.path.empty() && params.adapters.empty() && is_rank_0()) {
      print_untrained_weights();
    }
    fluid::load_parameters(program_, params, is_rank_0(),
                           [&](const std::string& path, const LoadOptions& options) {
                             return trainer_.load(path, options);
                           });
  }

  /// Runs a learning rate range test instead of training.
  void find_learning_rate() {
    LearningRateFinderOptions options{.recipe = cycle().recipes().front().name};
    if (flags_.max_steps > 0) options.steps = flags_.max_steps;
    print_start();
    const LearningRateCurve curve =
        fluid::find_learning_rate(trainer_.executor(), program_, train_, options);
    if (is_rank_0()) report_learning_rates(curve, flags_.find_lr_file());
    print_all_skipped_records();
  }

  FitOptions fit_options() {
    FitOptions options{
        .recipes = parse_recipes(program_, flags_.recipes),
        .epochs = flags_.epochs,
        .max_steps = flags_.max_steps,
        .validation = validation_ ? &*validation_ : nullptr,
        .averages = averages_parameters(program_.ir().main()),
        .save = flags_.save,
        .handle_signals = true,
        .labels = {{"data", flags_.data}, {"drop-last", flags_.drop_last ? "on" : "off"}}};
    set_best_epoch(options, flags_.best, program_, validation_.has_value());
    options.on_begin = [this](const BeginEvent& begin) {
      check_equal_flags();
      log_.truncate_after(begin.steps, begin.epochs);
      dump_.begin(begin.steps);
      if (!is_rank_0()) return;
      write_learned_table();
      print_start();
      if (const auto steps = updates()) {
        print_unreached_settings(program_, cycle(), *steps, resumed_);
      }
    };
    options.on_epoch_begin = [this](int64_t epoch) { progress_.begin_epoch(epoch); };
    options.on_step = [this](const StepEvent& step) {
      log_.append(step);
      progress_.update(step);
      if (is_rank_0()) dump_.write(step, trainer_.executor());
    };
    options.on_epoch = [this](const EpochEvent& epoch) {
      progress_.clear();
      if (is_rank_0() && flags_.overfit == 0) table_.print(epoch);
      log_.append(epoch);
    };
    options.on_end = [this] {
      print_all_skipped_records();
      report_profile(trainer_.executor(), flags_.profile, world_);
    };
    options.notice = [this](const std::string& text) {
      progress_.clear();
      print_notice(text);
    };
    return options;
  }

  void print_all_skipped_records() {
    ProcessGroup& group = trainer_.executor().process_group();
    print_skipped_records(train_, flags_.data, group);
    if (validation_) print_skipped_records(*validation_, flags_.val, group);
  }

  /// Throws UserError if the ranks have different flags, because their collectives would not match.
  void check_equal_flags() {
    const std::map<std::string, std::string> values = {
        {"val", flags_.val},
        {"seed", std::to_string(flags_.seed)},
        {"batch", std::to_string(flags_.batch)},
        {"data", flags_.data},
        {"drop-last", flags_.drop_last ? "on" : "off"},
        {"on-bad-record", flags_.reading.on_bad_record},
        {"checkpoint-every", flags_.checkpoint.every}};
    trainer_.executor().process_group().check_equal("command line", values);
  }

  void print_start() {
    std::vector<const Reader*> readers = {&train_};
    if (validation_) {
      readers.push_back(&*validation_);
      print_shared_samples(*validation_, train_);
    }
    print_training_start(
        {program_, trainer_.executor(), flags_, world_, readers, before_, opened_});
  }

  const TrainFlags& flags_;
  World world_;
  StepLog log_;
  CheckpointingOptions checkpoints_;
  ResidentMemory before_ = resident_memory();
  Program program_;
  StepDump dump_;
  TensorBoard board_;
  // Opens the validation data concurrently with the training data. If the validation data needs the
  // column table of the training data, opens the training data first.
  std::stop_source stop_opening_;
  std::future<std::optional<Reader>> opening_validation_;
  StopRequest request_at_exit_{
      stop_opening_};  ///< destroyed before opening_validation_, which waits
  std::optional<LearnedTable> learned_table_;  ///< set with train_
  Reader train_;
  ResidentMemory opened_ = resident_memory();
  std::optional<Reader> validation_;
  ProgressBar progress_;
  EpochTable table_;
  TrainingState resumed_;  ///< result of resumed_recipes(), set before trainer_
  Trainer trainer_;
};

/// Trains. Returns the exit code: 0, or 128 + the signal that stopped training.
int train(const TrainFlags& flags) {
  if (flags.finds_lr()) check_find_lr_flags(flags);
  for (const std::string& path : {flags.save, flags.best.save, flags.find_lr_file()}) {
    if (!path.empty()) check_writable(path);  // throws before the training
  }
  if (!flags.tensorboard.empty()) check_tensorboard_directory(flags.tensorboard);
  std::signal(SIGPIPE, SIG_IGN);  // ignored, so that a write to a closed pipe fails with EPIPE
  std::signal(SIGUSR1, SIG_IGN);  // ~SignalHandlers() restores this at exit
  static const SignalHandlers signals;  // static: destroyed at exit, after errors are printed
  Training(flags).run();
  return SignalHandlers::stop_requested() ? 128 + SignalHandlers::stop_signal() : 0;
}

}  // namespace

void add_train(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("train", "Train a program on data");
  const auto flags = std::make_shared<TrainFlags>();
  add_train_flags(*command, *flags);
  command->footer(
      "Examples:\n"
      "  fluidrun train mnist_fluid --data digits --val digits --epochs 6 --batch 100 \\\n"
      "    --save mnist.safetensors\n\n"
      "Notes:\n"
      "  Processes started by `fluidrun launch`, torchrun or Slurm train data-parallel.\n"
      "  Ctrl-C, SIGTERM and SIGHUP finish the step, save, and exit with code 130, 143 and 129. A "
      "second signal terminates the process.\n"
      "  SIGUSR1 saves, and training continues.\n\n" +
      data_help() + "\n" + pattern_help());
  command->callback([&action, flags, command] {
    if (flags->overfit > 0) set_overfit_steps(*flags, command->count("--epochs") > 0);
    if (flags->dry_run) reset_file_flags(*flags);
    flags->reading.cache_dir = flags->place.cache_dir;
    action = [flags] { return train(*flags); };
  });
}

}  // namespace fluid
