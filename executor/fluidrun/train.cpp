#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <array>
#include <chrono>
#include <cmath>
#include <future>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "executor/bytes_text.h"
#include "executor/cpu/cpu_target.h"
#include "executor/executor.h"
#include "executor/fluidrun/best_epoch.h"
#include "executor/fluidrun/checkpointing.h"
#include "executor/fluidrun/command.h"
#include "executor/fluidrun/common.h"
#include "executor/fluidrun/data_flags.h"
#include "executor/fluidrun/epoch_table.h"
#include "executor/fluidrun/figures.h"
#include "executor/fluidrun/line_file.h"
#include "executor/fluidrun/planned_step.h"
#include "executor/fluidrun/progress.h"
#include "executor/fluidrun/resident.h"
#include "executor/fluidrun/signals.h"
#include "executor/fluidrun/world_flags.h"
#include "ir/atomic_file.h"
#include "ir/error.h"
#include "passes/check_recorded.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

using Clock = std::chrono::steady_clock;

struct TrainFlags {
  std::string program, data, val, params, save, log_json;
  int64_t epochs = 1, batch = 0, micro_batches = 1, max_steps = 0;
  uint64_t seed = 0;
  double lr = 0;
  bool drop_last = false, verify_plan = false, check_finite = false;
  BestFlags best;
  CheckpointFlags checkpoint;
  WorldFlags world;
  PlaceFlags place;
};

double ms_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

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

/// What --log-json says of a step besides its outputs.
struct StepLog {
  int64_t epoch = 0, step = 0;
  double lr = 0;
  std::optional<LossScaling> scaling;
  bool skipped = false;
  double ms = 0;
};

std::string log_line(const StepLog& step, const Outputs& outputs) {
  nlohmann::ordered_json line = {{"epoch", step.epoch}, {"step", step.step}};
  for (const auto& [name, value] : scalars(outputs)) line[name] = value;
  line["lr"] = step.lr;
  if (step.scaling) line["loss_scale"] = step.scaling->scale;
  line["skipped"] = step.skipped;
  line["step_ms"] = step.ms;
  return line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::optional<Reader> open_validation(const Program& program, const TrainFlags& flags,
                                      const World& world) {
  if (flags.val.empty()) return std::nullopt;
  return open_reader(program, flags.val, "test", flags.batch, {}, false, world);
}

/// Samples of the whole batch that all processes share.
int64_t whole(const Batch& batch) { return batch.whole == 0 ? batch.size : batch.whole; }

class Training {
 public:
  explicit Training(const TrainFlags& flags)
      : flags_(flags),
        world_(World::from_env()),
        log_(leads() && !flags.log_json.empty() ? std::make_unique<LineFile>(flags.log_json)
                                                : nullptr),
        checkpointing_(flags.checkpoint, leads()),
        program_(open_program(flags.program)),
        lr_(set_rate(program_, flags.lr)),
        loss_(loss_output(program_)),
        best_(flags.best, program_, loss_, !flags.val.empty()),
        val_opening_(std::async(std::launch::async,
                                [&] { return open_validation(program_, flags, world_); })),
        reader_(open_reader(program_, flags.data, "train", flags.batch, flags.seed, flags.drop_last,
                            world_)),
        executor_(program_, place_named(flags.place.place), options()) {
    checkpointing_.seek(reader_);
    executor_.prepare({.train = reader_.batch_sizes()});
    if (std::optional<Reader> val = val_opening_.get()) {
      std::vector<int64_t> sizes = val->batch_sizes();
      std::erase(sizes, 0);  // of a rank that has nothing of the last batch
      executor_.prepare({.eval = sizes});
      val_.emplace(std::move(*val));
    }
    if (const Checkpoint* from = checkpointing_.from()) {
      go_on(*from);
    } else if (!flags.params.empty()) {
      executor_.load(flags.params);
    }
    if (executor_.follows_plateau() && loss_.empty()) {
      throw UserError("the schedule 'plateau' follows the loss, which is no output");
    }
    if (log_) log_->cut(steps_ > 0 ? step_log_bytes(flags.log_json, steps_) : 0);
    scaling_ = executor_.loss_scaling();
    agree();
  }

  void run() {
    if (leads()) describe();
    const Signals signals;
    Progress progress(flags_.epochs, reader_.batches(), !leads());
    EpochTable table(flags_.epochs);
    while (epochs_ < flags_.epochs && !finished() && !best_.patience_ends(epochs_)) {
      const int64_t epoch = epochs_ + 1;
      const Clock::time_point begin = Clock::now();
      const int64_t steps_before = steps_;
      progress.begin_epoch(epoch);
      train_epoch(epoch, progress);
      const auto steps = static_cast<double>(std::max<int64_t>(1, steps_ - steps_before));
      const double ms = ms_since(begin) / steps;
      progress.clear();
      const bool complete = ended(epoch) && !stop_asked_;
      auto figures = figures_.values();
      if (val_ && !stop_asked_) validate(figures);
      const bool best = complete && best_.take(epoch, figures);
      if (leads()) table.print(epoch, figures, ms, ms_since(begin) / 1e3, best);
      if (complete) {
        reduce_on_plateau(epoch, figures);
        close_epoch(epoch, best);
      }
    }
    if (!leads()) return;
    if (checkpointing_.on()) checkpoint();
    if (stop_asked_) fmt::print(stderr, "stopped after step {}\n", steps_);
    if (scaling_) {
      fmt::print(stderr, "loss scale {:g}; {} of {} steps skipped\n", scaling_->scale,
                 scaling_->skipped, steps_);
    }
    save();
    describe_best();
  }

 private:
  /// Whether this process is the one that says, saves and writes what all come to.
  bool leads() const { return world_.rank == 0; }

  ExecutorOptions options() const {
    ExecutorOptions options = executor_options(flags_.place, flags_.seed);
    set_world(options, flags_.world, world_);
    options.verify_plan = flags_.verify_plan;
    options.check_finite = flags_.check_finite;
    options.micro_batches = flags_.micro_batches;
    return options;
  }

  /// Of ranks that were started with other flags, some would wait for the others without end.
  void agree() {
    executor_.agree("number of samples", std::to_string(reader_.samples()));
    executor_.agree("checkpoint to go on from", std::to_string(steps_));
    std::string loop = fmt::format("epochs {}, max-steps {}, val {}, seed {}, best {}, patience {}",
                                   flags_.epochs, flags_.max_steps, flags_.val, flags_.seed,
                                   best_.criterion(), flags_.best.patience.value_or(0));
    loop += fmt::format(", batch {}, data {}, drop-last {}", flags_.batch, flags_.data,
                        flags_.drop_last);
    executor_.agree("command line", loop);
  }

  void go_on(const Checkpoint& from) {
    checkpointing_.restore(executor_, loop_options());
    steps_ = from.state.steps;
    epochs_ = from.state.epochs;
    figures_.set_sums(from.state.figures);
    const auto& options = from.state.options;
    if (options.contains("best") && options.at("best") == best_.criterion()) {
      best_.go_on(from.state.best);
    }
    if (!flags_.params.empty() && leads()) {
      fmt::print(stderr, "--params is not read: {} is\n", from.path);
    }
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

  void checkpoint(bool best = false) { checkpointing_.save(executor_, state(), best); }

  /// Whether the data of an epoch, which may have begun before a checkpoint, has come to its end.
  bool ended(int64_t epoch) const { return reader_.position() >= epoch * reader_.samples(); }

  void reduce_on_plateau(int64_t epoch, const std::vector<std::pair<std::string, double>>& of) {
    const std::string name = (val_ ? "val_" : "") + loss_;
    const auto loss = std::ranges::find(of, name, &std::pair<std::string, double>::first);
    if (loss == of.end() || !executor_.reduce_on_plateau(loss->second)) return;
    if (!leads()) return;
    fmt::print(stderr, "{} has reached a plateau: the learning rate falls after epoch {}\n", name,
               epoch);
  }

  void close_epoch(int64_t epoch, bool best) {
    epochs_ = epoch;
    figures_.clear();
    if (best && leads() && !flags_.best.save.empty()) executor_.save(flags_.best.save);
    const bool due = checkpointing_.due_at_epoch(steps_);
    if (checkpointing_.on() && (due || best)) checkpoint(best);
  }

  void describe_best() const {
    if (best_.patience_ends(epochs_)) {
      fmt::print(stderr, "stopped after epoch {}: {} without a better one\n", epochs_,
                 *flags_.best.patience);
    }
    if (best_.best()) fmt::print(stderr, "best: {}\n", best_.text());
    if (flags_.best.save.empty()) return;
    fmt::print(stderr, "{} {}\n", best_.best() ? "saved" : "no epoch came to its end: not saved",
               flags_.best.save);
  }

  void describe() {
    const CompileReport report = executor_.compile_report();
    const std::string batch =
        world_.size == 1
            ? std::to_string(reader_.batch_sizes().front())
            : fmt::format("{} on each of {} ranks", reader_.batch_sizes().front(), world_.size);
    fmt::print(stderr,
               "{}: {} samples, {} steps of {} an epoch; {} kernels compiled, {} from the cache, "
               "{:.0f} ms\n",
               program_.ir().name, reader_.samples(), reader_.batches(), batch, report.kernels,
               report.from_cache, report.passes_ms + report.compile_ms);
    describe_memory();
    const auto amp = amp_of(flags_.place);
    if (amp && amp->keeps_halves()) describe_o2();
  }

  void describe_memory() const {
    const MemoryUse arena = executor_.memory();
    const auto text = [](int64_t bytes) { return bytes_text(static_cast<double>(bytes)); };
    if (before_.total == 0) return fmt::print(stderr, "memory: arena {}\n", text(arena.total));
    std::vector<const Reader*> readers = {&reader_};
    if (val_) readers.push_back(&*val_);
    std::vector<std::string> outside;  // of 1 MiB and more
    for (const auto& [owner, bytes] : owners_outside(arena, before_, opened_, readers)) {
      outside.push_back(owner + " " + text(bytes));
    }
    if (outside.empty()) outside.push_back("nothing of 1 MiB");
    fmt::print(stderr, "memory: at the start {}; arena {}; outside it {}\n", text(before_.total),
               text(arena.total), fmt::join(outside, ", "));
  }

  /// Kept in half besides f32, parameters may take more than smaller activations save.
  void describe_o2() const {
    const int64_t batch = reader_.batch_sizes().front();
    Options options;
    options.amp = amp_of(flags_.place);
    options.weighted = flags_.micro_batches > 1;
    const CpuTarget target(describe_host(threads_of(flags_.place)));
    const StepPlanner planner(program_, target, options, flags_.micro_batches);
    fmt::print(stderr, "O2: {}\n", compared_to_f32(planner, batch, planner.at(batch).total()));
  }

  bool finished() const {
    return stop_asked_ || (flags_.max_steps > 0 && steps_ >= flags_.max_steps);
  }

  void train_epoch(int64_t epoch, Progress& progress) {
    if (ended(epoch)) return;
    const int64_t before = reader_.position() - epochs_ * reader_.samples();
    int64_t in_epoch = before * reader_.batches() / reader_.samples();
    for (const Batch& batch : reader_) {
      const Clock::time_point begin = Clock::now();
      const Outputs outputs = executor_.run(batch);
      ++steps_;
      const bool skipped = was_skipped();
      const double lr = executor_.learning_rate().value_or(lr_);
      if (log_) log(log_line({epoch, steps_, lr, scaling_, skipped, ms_since(begin)}, outputs));
      if (flags_.check_finite) explain_overflow(batch, outputs, skipped, progress);
      if (!skipped) {
        figures_.add(outputs, whole(batch));
        check_loss(outputs);
      }
      progress.step(++in_epoch, whole(batch), lr, [&] { return figures_.text(); });
      const bool asked = take_asked();
      if (asked) save();
      if (finished()) return;
      // At an epoch's end only once it is closed.
      if (checkpointing_.due(steps_, asked) && !ended(epoch)) checkpoint();
    }
  }

  /// Whether somebody asked to save, on any rank; and to stop, which all must do after the same
  /// step.
  bool take_asked() {
    std::array<double, 2> asked = {Signals::stop_asked() ? 1.0 : 0,
                                   Signals::take_save_asked() ? 1.0 : 0};
    executor_.add_up(asked);
    stop_asked_ = asked[0] > 0;
    return asked[1] > 0;
  }

  /// Whether the step just run was not applied, because its gradients overflowed.
  bool was_skipped() {
    const std::optional<LossScaling> before = std::exchange(scaling_, executor_.loss_scaling());
    if (!scaling_ || scaling_->skipped == before->skipped) return false;
    if (before->scale <= LossScale().floor) {  // backing off no longer helps
      diverged(fmt::format("gradients overflow with a loss scale of {:g}", before->scale));
    }
    return true;
  }

  /// What was trained until then is not lost when the log cannot be written.
  void log(const std::string& line) {
    try {
      log_->append(line);
    } catch (const UserError&) {
      save();
      throw;
    }
  }

  /// After a nan all parameters are nan, and stay so.
  void check_loss(const Outputs& outputs) const {
    if (!loss_.empty() && std::isnan(outputs[loss_].item())) diverged("'" + loss_ + "' is nan");
  }

  /// With --check-finite: where a step that was not applied met its first number that is not
  /// finite.
  void explain_overflow(const Batch& batch, const Outputs& outputs, bool skipped,
                        Progress& progress) {
    const double loss = loss_.empty() ? 0 : outputs[loss_].item();
    if (!skipped && std::isfinite(loss)) return;
    const std::string where = executor_.first_nonfinite(batch);
    if (!skipped) diverged(fmt::format("'{}' is {} ({})", loss_, loss, where));
    progress.clear();
    fmt::print(stderr, "step {} skipped: {}\n", steps_, where);
  }

  [[noreturn]] void diverged(const std::string& what) const {
    throw UserError(fmt::format(
        "{} at step {}: training diverged, and nothing is saved; try a smaller --lr than {:g}",
        what, steps_, lr_));
  }

  void validate(std::vector<std::pair<std::string, double>>& to) {
    Figures figures;
    if (world_.size > 1) executor_.broadcast();  // rank 0's running statistics are the ones saved
    for (const Batch& batch : *val_) {
      if (batch.size > 0) figures.add(executor_.eval(batch), batch.size);
    }
    if (world_.size > 1) figures.add_up(executor_, output_names());
    for (const auto& [name, value] : figures.values()) to.emplace_back("val_" + name, value);
  }

  std::vector<std::string> output_names() const {
    std::vector<std::string> names;
    for (const ir::Output& o : program_.ir().main().outputs) names.push_back(o.name);
    return names;
  }

  void save() {
    if (flags_.save.empty() || !leads()) return;
    executor_.save(flags_.save);
    fmt::print(stderr, "saved {}\n", flags_.save);
  }

  const TrainFlags& flags_;
  World world_;
  std::unique_ptr<LineFile> log_;
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
  std::optional<LossScaling> scaling_;  ///< after the last step
  int64_t steps_ = 0, epochs_ = 0;      ///< done
  bool stop_asked_ = false;
};

}  // namespace

void add_train(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("train", "Train a program on data");
  const auto flags = std::make_shared<TrainFlags>();
  add_program_argument(*command, flags->program);
  command->add_option("--data", flags->data, "the training data")->required();
  command->add_option("--val", flags->val, "data to evaluate after each epoch");
  command->add_option("--epochs", flags->epochs, "times through the data")
      ->check(must_be_count)
      ->capture_default_str();
  add_batch(*command, flags->batch);
  command
      ->add_option("--micro-batches", flags->micro_batches,
                   "slices that a step's batch goes through in, to save memory")
      ->check(must_be_count)
      ->capture_default_str();
  command->add_option("--lr", flags->lr, "learning rate, instead of the program's")
      ->check(must_be_positive);
  command->add_option("--seed", flags->seed, "of initial values, dropout and shuffling")
      ->check(must_be_natural)
      ->capture_default_str();
  command->add_option("--max-steps", flags->max_steps, "stop after so many steps")
      ->check(must_be_count);
  command->add_option("--params", flags->params, "start from these parameters (safetensors)");
  command->add_option("--save", flags->save, "write the parameters here (safetensors)");
  command->add_option("--log-json", flags->log_json,
                      "write one JSON object a step here, a line each as it is made");
  add_best_flags(*command, flags->best);
  add_checkpoint_flags(*command, flags->checkpoint);
  add_world_flags(*command, flags->world);
  command->add_flag("--drop-last", flags->drop_last, "leave out a smaller last batch");
  command->add_flag("--check-finite", flags->check_finite,
                    "run a step that overflows again, and name the first op that does");
  command->add_flag("--verify-plan", flags->verify_plan, "poison dead memory to check the plan");
  add_place_flags(*command, flags->place);
  add_memory_flag(*command, flags->place);
  command->footer(
      "Several processes train together where `fluidrun launch`, torchrun or Slurm starts them.\n"
      "Example: fluidrun train mnist_fluid --data digits --val digits --epochs 6 "
      "--batch 100 --save mnist.safetensors\n\n" +
      data_help());
  command->callback([&action, flags] {
    action = [flags] {
      for (const std::string& path : {flags->save, flags->best.save}) {
        if (!path.empty()) check_writable(path);  // before all that takes long
      }
      Training(*flags).run();
      return 0;
    };
  });
}

}  // namespace fluid
