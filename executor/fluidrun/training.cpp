#include "executor/fluidrun/training.h"

#include <csignal>
#include <future>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

#include "executor/comm/process_group.h"
#include "executor/fluidrun/data_flags.h"
#include "executor/fluidrun/epoch_table.h"
#include "executor/fluidrun/print_to.h"
#include "executor/fluidrun/progress.h"
#include "executor/fluidrun/resident.h"
#include "executor/fluidrun/step_log.h"
#include "executor/fluidrun/train_report.h"
#include "executor/trainer/signals.h"
#include "executor/trainer/trainer.h"
#include "ir/error.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

Program open_with_rate(const TrainFlags& flags) {
  Program program = open_program(flags.program);
  ir::Op* train = find_directive(program.ir().main());
  if (train != nullptr && flags.lr > 0) train->attrs.set("lr", flags.lr);
  check_fit_options(program, {});
  return program;
}

std::optional<Reader> open_validation(const Program& program, const TrainFlags& flags,
                                      const World& world) {
  if (flags.val.empty()) return std::nullopt;
  return open_reader(program, flags.val, "test", flags.batch, {}, false, world);
}

/// Runs `work` in a thread, or where the system gives none when the result is asked for.
template <class F>
auto in_background(F work) {
  try {
    return std::async(std::launch::async, work);
  } catch (const std::system_error&) {
    return std::async(std::launch::deferred, work);
  }
}

/// `fluidrun train`: turns flags into a Trainer's options, and draws what it reports.
class Training {
 public:
  explicit Training(const TrainFlags& flags)
      : flags_(flags),
        world_(World::from_env()),
        log_(is_rank_0() ? flags.log_json : ""),
        checkpoints_(checkpointing_options(flags.checkpoint)),
        program_(open_with_rate(flags)),
        validation_opening_(
            in_background([&] { return open_validation(program_, flags, world_); })),
        train_(open_reader(program_, flags.data, "train", flags.batch, flags.seed, flags.drop_last,
                           world_)),
        progress_(flags.epochs, train_.batches(), !is_rank_0()),
        table_(flags.epochs),
        trainer_(program_, place_of(flags.place, flags.verify_plan, world_.local_rank), options(),
                 checkpoints_) {}

  void run() {
    take_validation();
    if (!trainer_.resumes()) {
      if (!flags_.params.empty()) trainer_.load(flags_.params, layout_of(flags_.params_layout));
    } else if (!flags_.params.empty() && is_rank_0()) {
      print_to(stderr, "--params is not read: {} is\n", trainer_.resumed_path());
    }
    trainer_.fit(train_, fit_options());
    if (is_rank_0()) log_.check();
  }

 private:
  bool is_rank_0() const { return world_.rank == 0; }

  ExecutorOptions options() {
    ExecutorOptions options =
        training_options(flags_.place, flags_.seed, train_.batch_sizes().front());
    if (options.precision.choose_amp) {  // which takes long: bad options and data are found before
      take_validation();
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
        .epochs = flags_.epochs,
        .max_steps = flags_.max_steps,
        .validation = validation_ ? &*validation_ : nullptr,
        .save = flags_.save,
        .handle_signals = true,
        .labels = {{"data", flags_.data}, {"drop-last", flags_.drop_last ? "on" : "off"}}};
    set_best(options, flags_.best, validation_.has_value());
    options.on_begin = [this](const BeginEvent& begin) {
      check_equal_flags();
      log_.cut(begin.steps, begin.epochs);
      if (is_rank_0()) describe();
    };
    options.on_epoch_begin = [this](int64_t epoch) { progress_.begin_epoch(epoch); };
    options.on_step = [this](const StepEvent& step) {
      log_.append(step);
      progress_.step(step);
    };
    options.on_epoch = [this](const EpochEvent& epoch) {
      progress_.clear();
      if (is_rank_0()) table_.print(epoch);
      log_.append(epoch);
    };
    options.on_end = [this] { report_profile(trainer_.executor(), flags_.profile, world_); };
    options.notice = [this](const std::string& text) {
      progress_.clear();
      print_to(stderr, "{}\n", text);
    };
    return options;
  }

  void take_validation() {
    if (!validation_opening_.valid()) return;
    if (std::optional<Reader> opened = validation_opening_.get()) {
      validation_.emplace(std::move(*opened));
    }
  }

  /// Ranks that were started with other flags would wait for each other without end.
  void check_equal_flags() {
    const std::map<std::string, std::string> values = {
        {"val", flags_.val},
        {"seed", std::to_string(flags_.seed)},
        {"batch", std::to_string(flags_.batch)},
        {"data", flags_.data},
        {"drop-last", flags_.drop_last ? "on" : "off"},
        {"checkpoint-every", flags_.checkpoint.every}};
    trainer_.executor().process_group().check_equal("command line", values);
  }

  void describe() {
    std::vector<const Reader*> readers = {&train_};
    if (validation_) {
      readers.push_back(&*validation_);
      const int64_t shared = validation_->dataset().rows_shared_with(train_.dataset());
      if (shared > 0) {
        print_to(stderr, "--val: {} of {} samples are also trained on\n", shared,
                 validation_->samples());
      }
    }
    fluid::describe({program_, trainer_.executor(), flags_, world_, readers, before_, opened_});
  }

  const TrainFlags& flags_;
  World world_;
  StepLog log_;
  CheckpointingOptions checkpoints_;
  Resident before_ = resident_now();
  Program program_;
  std::future<std::optional<Reader>> validation_opening_;  // while the rest is read and compiled
  Reader train_;
  Resident opened_ = resident_now();
  std::optional<Reader> validation_;
  Progress progress_;
  EpochTable table_;
  Trainer trainer_;
};

}  // namespace

int train(const TrainFlags& flags) {
  std::signal(SIGPIPE, SIG_IGN);  // a reader that goes away ends its stream, not training
  std::signal(SIGUSR1, SIG_IGN);  // once Signals has restored it: everything is saved then
  static const Signals signals;   // until the process ends: nothing interrupts a failure's report
  Training(flags).run();
  return Signals::stop_requested() ? 128 + Signals::stop_signal() : 0;
}

}  // namespace fluid
