// `fluidrun train`: sets the options of a Trainer from the flags and prints its events.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "executor/comm/process_group.h"
#include "executor/device/bytes_text.h"
#include "executor/fluidrun/command.h"
#include "executor/fluidrun/dry_run.h"
#include "executor/fluidrun/dump.h"
#include "executor/fluidrun/flags.h"
#include "executor/fluidrun/help.h"
#include "executor/fluidrun/inputs.h"
#include "executor/fluidrun/learning_rate_plot.h"
#include "executor/fluidrun/memory_report.h"
#include "executor/fluidrun/optimizer_flags.h"
#include "executor/fluidrun/overfit.h"
#include "executor/fluidrun/parameter_flags.h"
#include "executor/fluidrun/planned_step.h"
#include "executor/fluidrun/progress.h"
#include "executor/fluidrun/recipe_flags.h"
#include "executor/fluidrun/schedule_flags.h"
#include "executor/fluidrun/step_log.h"
#include "executor/launcher/print_to.h"
#include "executor/places/place_machine.h"
#include "executor/session/session_options.h"
#include "executor/trainer/history_csv.h"
#include "executor/trainer/learning_rate_finder.h"
#include "executor/trainer/signals.h"
#include "executor/trainer/tensorboard.h"
#include "executor/trainer/trainer.h"
#include "ir/atomic_file.h"
#include "ir/error.h"
#include "ir/number.h"
#include "passes/recipe.h"

namespace fluid {
namespace {

std::string must_be_decay(const std::string& text) {
  const bool good = must_be_positive(text).empty() && *parse_number<double>(text) < 1;
  return good ? "" : "must be above 0 and below 1, not " + text;
}

struct TrainFlags {
  std::string program, data, val, recipes, save, log_json, history, tensorboard;
  std::string find_lr = "false";  ///< picture; "true": none, "false": no learning rate range test
  ParamsFlags params;
  int64_t epochs = 1, batch = 0, micro_batches = 1, max_steps = 0, log_every = 0;
  uint64_t seed = 0;
  double ema = 0, lookahead_alpha = 0;
  int64_t swa = 0, swa_every = 0, lookahead = 0;
  int64_t overfit = 0;  ///< number of samples of --overfit; 0: not given
  ReadingFlags reading;
  OptimizerFlags optimizer;
  ScheduleFlags schedule;
  ParameterFlags parameters;
  bool drop_last = false, verify_plan = false, check_finite = false, dry_run = false;
  BestEpochFlags best;
  CheckpointFlags checkpoint;
  WorldFlags world;
  PlaceFlags place;
  ProfileFlags profile;
  DumpFlags dump;
  TensorBoardOptions tensorboard_options;
};

/// A training run before its first step: the arguments of print_training_start().
struct PreparedTraining {
  const Program& program;
  const Executor& executor;
  const TrainFlags& flags;
  const World& world;
  /// Readers of the training data and of the validation data, if any, in this order.
  std::vector<const Reader*> readers;
  ResidentMemory before;  ///< measured before the program was loaded
  ResidentMemory opened;  ///< measured after the training data was opened
};

/// Prints to stderr the arena size of a step with AMP level O2, and of the same step in f32.
/// Half-precision weights may take more memory than half-precision activations save.
void print_o2_memory(const PreparedTraining& t) {
  const int64_t batch = t.readers.front()->batch_sizes().front();
  ExecutorOptions options;
  options.precision.amp = t.executor.amp();
  options.gpu.prefetch = !t.flags.place.no_prefetch;
  options.micro_batches = t.flags.micro_batches;
  options.debug.check_finite = t.flags.check_finite;
  set_world(options, t.flags.world, t.world);
  const std::unique_ptr<Target> target = target_of(t.executor.place(), t.flags.place);
  const StepPlanner planner(t.program, *target, session_options(options));
  const int64_t arena_bytes = planner.plan_step(batch).arena_bytes();
  print_to(stderr, "O2: {} for a training step; {}\n", bytes_text(static_cast<double>(arena_bytes)),
           f32_comparison_text(planner, batch, arena_bytes));
}

/// Prints to stderr the number of samples, steps and kernels, the memory, and the AMP level.
void print_training_start(const PreparedTraining& t) {
  const Reader& reader = *t.readers.front();
  const CompileReport report = t.executor.compile_report();
  const int64_t batch = reader.batch_sizes().front();
  print_to(stderr,
           "{}: {} samples, {} steps of {} an epoch; {} kernels compiled, {} from the cache, "
           "{:.0f} ms\n",
           t.program.ir().name, reader.samples(), reader.batches(),
           t.world.size == 1 ? std::to_string(batch)
                             : fmt::format("{} on each of {} ranks", batch, t.world.size),
           report.kernels, report.cache_hits, report.passes_ms + report.compile_ms);
  for (const std::string& line : report.library_rejections) print_to(stderr, "{}\n", line);
  print_memory_report(t.executor, t.readers, t.before, t.opened);
  const bool saves = !t.flags.save.empty() || !t.flags.best.save.empty();
  if (saves || !t.flags.checkpoint.directory.empty()) print_saving_memory(t.executor, t.world);
  if (t.flags.place.tf32 && t.executor.place() != cpu()) {
    print_to(stderr, "products and convolutions of f32 round their operands to TF32\n");
  }
  if (const auto& choice = t.executor.amp_choice(); choice && choice->measured()) {
    print_to(stderr, "--amp auto selects {}\n", choice->text());
  }
  const auto& amp = t.executor.amp();
  if (amp && amp->has_half_weights()) print_o2_memory(t);
}

/// Prints the suggested learning rate. Writes the curve to `file`, unless it is "true": as CSV if
/// its name ends in .csv, else as SVG.
void report_learning_rates(const LearningRateCurve& curve, const std::string& file) {
  if (curve.points.empty()) throw UserError("--find-lr: the loss of the first step is not finite");
  const LearningRatePoint& last = curve.points.back();
  print_to(stdout, "{} steps, learning rate {:.2g} to {:.2g}\n", curve.points.size(),
           curve.points.front().rate, last.rate);
  if (curve.suggestion) {
    print_to(stdout, "suggested learning rate: {:.2g}, where the loss falls most steeply\n",
             *curve.suggestion);
  } else {
    print_to(stdout, "no suggestion: the loss does not fall\n");
  }
  if (file == "true") return;
  write_file_atomically(
      file, file.ends_with(".csv") ? learning_rate_csv(curve) : learning_rate_svg(curve));
}

void print_totals(const History& trained) {
  const double rate = static_cast<double>(trained.samples) / trained.training_seconds;
  print_to(stderr,
           "trained on {} samples in {:.1f} s: {:.4g} samples/s; {:.1f} s with validation\n",
           trained.samples, trained.training_seconds, rate, trained.seconds);
}

/// Sets the averages and the lookahead of a recipe that the flags give.
void set_averages(Attrs& recipe, const TrainFlags& flags) {
  if (flags.ema > 0 || flags.swa > 0) {
    for (const char* name : {"ema_decay", "swa_start", "swa_every"}) recipe.erase(name);
  }
  if (flags.ema > 0) recipe.set("ema_decay", flags.ema);
  if (flags.swa > 0) recipe.set("swa_start", flags.swa);
  if (flags.swa_every > 0) recipe.set("swa_every", flags.swa_every);
  if (flags.lookahead > 0) recipe.set("lookahead_every", flags.lookahead);
  if (flags.lookahead_alpha > 0) recipe.set("lookahead_alpha", flags.lookahead_alpha);
}

/// The flags of averages and lookahead as they were given.
std::string averages_text(const TrainFlags& flags) {
  if (flags.ema > 0) return fmt::format("--ema {}", flags.ema);
  if (flags.swa > 0) return fmt::format("--swa {}", flags.swa);
  return flags.lookahead > 0 ? fmt::format("--lookahead {}", flags.lookahead) : "";
}

/// Opens the program. Sets the optimizer, the averages, the lookahead and the settings of
/// parameters that the flags give.
Program open_with_recipe(const TrainFlags& flags) {
  Program program = open_program(flags.program, flags.params);
  set_optimizer(program, flags.optimizer);
  set_parameters(program, flags.parameters);
  ir::Op* train = recipe_to_change(program, averages_text(flags));
  if (train != nullptr) set_averages(train->attrs, flags);
  check_fit_options(program, {.recipes = parse_recipes(program, flags.recipes)});
  return program;
}

TensorBoard open_board(Program& program, const TrainFlags& flags) {
  TensorBoard board(flags.tensorboard, flags.tensorboard_options);
  board.keep_gradients(program);
  return board;
}

Reader open_training_data(const Program& program, const TrainFlags& flags, const World& world) {
  Reader data = open_reader(program, flags.data, "train", flags.batch, flags.seed, flags.drop_last,
                            flags.reading, world);
  if (flags.overfit == 0) return data;
  return read_first_samples(data, flags.overfit, flags.seed, world);
}

std::optional<Reader> open_validation(const Program& program, const TrainFlags& flags,
                                      const World& world) {
  if (flags.val.empty()) return std::nullopt;
  return open_reader(program, flags.val, "test", flags.batch, {}, false, flags.reading, world);
}

/// Runs `work` in a new thread. If no thread can be started, or `later`, get() of the returned
/// future runs `work`.
template <class F>
auto in_background(F work, bool later) {
  try {
    return std::async(later ? std::launch::deferred : std::launch::async, work);
  } catch (const std::system_error&) {
    return std::async(std::launch::deferred, work);
  }
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
        opening_validation_(in_background([&] { return open_validation(program_, flags, world_); },
                                          flags.val.find("table=") != std::string::npos)),
        train_(open_training_data(program_, flags, world_)),
        progress_({flags.epochs, train_.batches(), flags.log_every, !is_rank_0()}),
        table_(flags.epochs),
        trainer_(scheduled_program(), place_of(flags.place, flags.verify_plan, world_.local_rank),
                 options(), checkpoints_) {}

  void run() {
    wait_for_validation();
    if (!trainer_.resumes()) {
      load_parameters();
    } else if (!flags_.params.path.empty() && is_rank_0()) {
      print_to(stderr, "--params is not read: {} is\n", trainer_.resumed_path());
    }
    if (flags_.find_lr != "false") return find_learning_rate();
    FitOptions options = fit_options();
    if (flags_.dry_run) {
      check_fit_options(program_, options);
      return dry_run(trainer_, options, train_, world_);
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
    if (is_rank_0() && trained.samples > 0) print_totals(trained);
    if (is_rank_0()) log_.throw_if_failed();
  }

 private:
  void load_parameters() {
    const ParamsFlags& params = flags_.params;
    if (!params.path.empty()) {
      const LoadReport report = trainer_.load(params.path, params.load_options());
      if (is_rank_0()) print_load_report(report, params);
    }
    if (!params.adapters.empty()) trainer_.load(params.adapters);
  }

  bool is_rank_0() const { return world_.rank == 0; }

  /// Runs a learning rate range test instead of training.
  void find_learning_rate() {
    LearningRateRange range;
    if (flags_.max_steps > 0) range.steps = flags_.max_steps;
    print_start();
    const LearningRateCurve curve =
        fluid::find_learning_rate(trainer_.executor(), program_, train_, range);
    if (is_rank_0()) report_learning_rates(curve, flags_.find_lr);
  }

  /// Sets the schedule that the flags give, which may end with the training.
  const Program& scheduled_program() {
    if (flags_.find_lr != "false") {
      set_schedule(program_, {.name = "manual", .settings = {}}, 0);
      return program_;
    }
    const int64_t all = flags_.epochs * train_.batches();
    const int64_t updates = flags_.max_steps > 0 ? std::min(flags_.max_steps, all) : all;
    set_schedule(program_, flags_.schedule, updates);
    return program_;
  }

  ExecutorOptions options() {
    ExecutorOptions options =
        training_options(flags_.place, flags_.seed, train_.batch_sizes().front());
    options.length = length_of(program_, train_.source());
    if (options.precision.choose_amp) {  // checks the options before the timing runs
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

  FitOptions fit_options() {
    FitOptions options{
        .recipes = parse_recipes(program_, flags_.recipes),
        .epochs = flags_.epochs,
        .max_steps = flags_.max_steps,
        .validation = validation_ ? &*validation_ : nullptr,
        .averages = keeps_averages(program_.ir().main()),
        .save = flags_.save,
        .handle_signals = true,
        .labels = {{"data", flags_.data}, {"drop-last", flags_.drop_last ? "on" : "off"}}};
    set_best_epoch(options, flags_.best, validation_.has_value());
    options.on_begin = [this](const BeginEvent& begin) {
      check_equal_flags();
      log_.truncate_after(begin.steps, begin.epochs);
      if (is_rank_0()) print_start();
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
      report_skipped(train_, flags_.data);
      if (validation_) report_skipped(*validation_, flags_.val);
      report_profile(trainer_.executor(), flags_.profile, world_);
    };
    options.notice = [this](const std::string& text) {
      progress_.clear();
      print_notice(text);
    };
    return options;
  }

  void wait_for_validation() {
    if (!opening_validation_.valid()) return;
    if (std::optional<Reader> opened = opening_validation_.get()) {
      validation_.emplace(std::move(*opened));
    }
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
      const int64_t shared = common_rows(validation_->source(), train_.source());
      if (shared > 0) {
        print_to(stderr, "--val: {} of {} samples are also trained on\n", shared,
                 validation_->samples());
      }
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
  // Opens the validation data while the constructor opens the training data; afterwards if the
  // training data writes a table that it reads.
  std::future<std::optional<Reader>> opening_validation_;
  Reader train_;
  ResidentMemory opened_ = resident_memory();
  std::optional<Reader> validation_;
  ProgressBar progress_;
  EpochTable table_;
  Trainer trainer_;
};

/// The flags of a dry run, without those that read or write files of a training run.
TrainFlags dry_run_flags(TrainFlags flags) {
  for (std::string* path :
       {&flags.save, &flags.best.save, &flags.log_json, &flags.history, &flags.tensorboard}) {
    path->clear();
  }
  flags.checkpoint = {};
  flags.profile = {};
  flags.dump = {};
  return flags;
}

constexpr int64_t kOverfitSteps = 1000;

/// The flags of --overfit, which trains for 1000 steps or --max-steps, unless there is --epochs.
TrainFlags overfit_flags(TrainFlags flags, bool has_epochs) {
  if (has_epochs) return flags;
  if (flags.max_steps == 0) flags.max_steps = kOverfitSteps;
  flags.epochs = flags.max_steps;
  return flags;
}

/// Trains. Returns the exit code: 0, or 128 + the signal that stopped training.
int train(const TrainFlags& flags) {
  const std::string picture =
      flags.find_lr == "true" || flags.find_lr == "false" ? "" : flags.find_lr;
  for (const std::string& path : {flags.save, flags.best.save, picture}) {
    if (!path.empty()) check_writable(path);  // reject a path that is not writable before training
  }
  if (!flags.tensorboard.empty()) check_tensorboard_directory(flags.tensorboard);
  std::signal(SIGPIPE, SIG_IGN);  // ignored, so that a write to a closed pipe fails with EPIPE
  std::signal(SIGUSR1, SIG_IGN);  // `signals` restores this at exit: ignores a late SIGUSR1
  static const SignalHandlers signals;  // static: destroyed at exit, after errors are printed
  Training(flags).run();
  return SignalHandlers::stop_requested() ? 128 + SignalHandlers::stop_signal() : 0;
}

void add_find_lr_flag(CLI::App& command, TrainFlags& flags) {
  CLI::Option* find_lr = command.add_flag(
      "--find-lr", flags.find_lr,
      "instead of training, run a learning rate range test of 100 steps (or --max-steps), from "
      "1e-7 to 10, and suggest a rate; --find-lr=FILE.svg draws the curve, FILE.csv lists it");
  for (const char* other :
       {"--checkpoint-dir", "--save", "--save-best", "--history", "--log-json", "--tensorboard",
        "--val", "--schedule", "--dump", "--dry-run", "--overfit"}) {
    find_lr->excludes(command.get_option(other));
  }
}

void add_training_flags(CLI::App& command, TrainFlags& flags) {
  begin_group(command, kTrainingGroup);
  add_recipes_flag(command, flags.recipes);
  command.add_option("--epochs", flags.epochs, "passes over the training data")
      ->check(must_be_positive_integer)
      ->type_name("N")
      ->capture_default_str();
  command.add_option("--max-steps", flags.max_steps, "stop after this many steps")
      ->check(must_be_positive_integer)
      ->type_name("N");
  command
      .add_option("--log-every", flags.log_every,
                  "print the progress after each N steps, instead of a progress bar")
      ->check(must_be_positive_integer)
      ->type_name("N");
  command
      .add_option(
          "--ema", flags.ema,
          "keep exponential moving averages of the parameters; --val evaluates them, --save "
          "and --save-best write them")
      ->check(must_be_decay)
      ->type_name("DECAY");
  CLI::Option* swa =
      command
          .add_option("--swa", flags.swa,
                      "keep equal-weight averages of the parameters from this update on, as --ema "
                      "keeps moving averages")
          ->check(must_be_positive_integer)
          ->type_name("UPDATE");
  command.get_option("--ema")->excludes(swa);
  command.add_option("--swa-every", flags.swa_every, "average after each N updates (default: 1)")
      ->check(must_be_positive_integer)
      ->type_name("N")
      ->needs(swa);
  CLI::Option* lookahead =
      command
          .add_option(
              "--lookahead", flags.lookahead,
              "move slow weights towards the parameters after each N updates, and reset the "
              "parameters to them")
          ->check(must_be_positive_integer)
          ->type_name("N");
  command
      .add_option("--lookahead-alpha", flags.lookahead_alpha,
                  "step size of the slow weights (default: 0.5)")
      ->check(must_be_positive)
      ->type_name("NUMBER")
      ->needs(lookahead);
  command.add_option("--seed", flags.seed, "seed of the initial parameters, dropout and shuffling")
      ->check(must_be_nonnegative_integer)
      ->type_name("N")
      ->capture_default_str();
  command.add_flag("--dry-run", flags.dry_run,
                   "instead of training, run a few steps of each size, and print their times, the "
                   "memory and the time of an epoch; writes no file");
  add_best_epoch_flags(command, flags.best);
}

void add_overfit_flag(CLI::App& command, TrainFlags& flags) {
  begin_group(command, kTrainingGroup);
  CLI::Option* overfit =
      command
          .add_option("--overfit", flags.overfit,
                      "train on the first N samples alone, until the loss is small; the exit code "
                      "tells whether the program can learn them")
          ->check(must_be_positive_integer)
          ->type_name("N");
  for (const char* other : {"--val", "--best", "--patience", "--save-best", "--checkpoint-dir"}) {
    overfit->excludes(command.get_option(other));
  }
}

void add_file_flags(CLI::App& command, TrainFlags& flags) {
  add_params_flags(command, flags.params);
  command
      .add_option("--save", flags.save,
                  "write the parameters to this file at the end (safetensors)")
      ->type_name("FILE");
  command
      .add_option(
          "--log-json", flags.log_json,
          "write one JSON object per line to this file: for each step, validation and epoch")
      ->type_name("FILE");
  command
      .add_option("--history", flags.history,
                  "write a line for each epoch to this CSV file: outputs on the training and "
                  "validation data, times")
      ->type_name("FILE");
  CLI::Option* tensorboard =
      command
          .add_option("--tensorboard", flags.tensorboard,
                      "write a TensorBoard event file to this directory: outputs of steps and "
                      "epochs, learning rate, loss scale, the program")
          ->type_name("DIR");
  CLI::Option* histograms =
      command
          .add_option("--tensorboard-histograms", flags.tensorboard_options.histograms_every,
                      "add histograms of parameters and gradients after each N steps")
          ->check(must_be_positive_integer)
          ->type_name("N")
          ->needs(tensorboard);
  command
      .add_option("--tensorboard-parameters", flags.tensorboard_options.histograms_of,
                  "parameters or layers of which histograms are added (default: all)")
      ->type_name("PATTERN")
      ->needs(histograms);
  command
      .add_option("--tensorboard-images", flags.tensorboard_options.images,
                  "add the first N samples of each epoch that are images, as they are fed, and the "
                  "outputs for them that are images")
      ->check(must_be_positive_integer)
      ->type_name("N")
      ->needs(tensorboard);
  add_checkpoint_flags(command, flags.checkpoint);
}

}  // namespace

void add_train(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("train", "Train a program on data");
  const auto flags = std::make_shared<TrainFlags>();
  add_program_argument(*command, flags->program);
  begin_group(*command, kDataGroup);
  command->add_option("--data", flags->data, "training data")->type_name("SPEC")->required();
  command->add_option("--val", flags->val, "validation data, evaluated after each epoch")
      ->type_name("SPEC");
  add_data_batch_flag(*command, flags->batch);
  add_reading_flags(*command, flags->reading);
  command->add_flag("--drop-last", flags->drop_last,
                    "drop the last batch of an epoch if it is smaller");
  add_training_flags(*command, *flags);
  add_optimizer_flags(*command, flags->optimizer);
  add_schedule_flags(*command, flags->schedule);
  add_parameter_flags(*command, flags->parameters);
  add_file_flags(*command, *flags);
  add_overfit_flag(*command, *flags);
  add_world_flags(*command, flags->world);
  add_place_flags(*command, flags->place);
  add_loss_scale_flags(*command, flags->place.amp.loss_scale);
  add_memory_flag(*command, flags->place);
  add_micro_batches_flag(*command, flags->micro_batches);
  begin_group(*command, kDebuggingGroup);
  command->add_flag("--check-finite", flags->check_finite,
                    "rerun a step with a non-finite loss or overflowed f16 gradients, and name the "
                    "first op that produces a non-finite value");
  command->add_flag("--verify-plan", flags->verify_plan,
                    "on the CPU, fill dead memory with NaN to check the memory plan");
  add_profile_flags(*command, flags->profile);
  add_dump_flags(*command, flags->dump);
  add_find_lr_flag(*command, *flags);
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
    if (flags->overfit > 0) *flags = overfit_flags(*flags, command->count("--epochs") > 0);
    if (flags->dry_run) *flags = dry_run_flags(*flags);
    action = [flags] { return train(*flags); };
  });
}

}  // namespace fluid
