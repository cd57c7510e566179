#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <limits>
#include <memory>
#include <optional>

#include "executor/fluidrun/bench_inference.h"
#include "executor/fluidrun/command.h"
#include "executor/fluidrun/flags.h"
#include "executor/fluidrun/help.h"
#include "executor/fluidrun/inputs.h"
#include "executor/fluidrun/optimizer_flags.h"
#include "executor/fluidrun/parameter_flags.h"
#include "executor/fluidrun/recipe_flags.h"
#include "executor/launcher/print_to.h"
#include "executor/trainer/inference.h"
#include "executor/trainer/required_columns.h"
#include "executor/trainer/trainer.h"
#include "ir/error.h"
#include "ir/stopwatch.h"

namespace fluid {
namespace {

struct BenchFlags {
  std::string program, data, recipes, mode = "train";
  int64_t batch = 0, micro_batches = 1, steps = 50, warmup = 10, repeat = 5;
  std::optional<int64_t> length;
  ReadingFlags reading;
  OptimizerFlags optimizer;
  ParameterFlags parameters;
  PlaceFlags place;
  ProfileFlags profile;
};

void bench_training(const BenchFlags& flags, Program& program) {
  if (flags.data.empty()) throw UserError("bench needs --data SPEC: training steps read data");
  Reader reader = open_reader(program, flags.data, "train", flags.batch, {}, true, flags.reading);
  const std::vector<RecipeSteps> recipes = parse_recipes(program, flags.recipes);
  check_training_columns(program, RecipeCycle(program, recipes), reader.source());
  ExecutorOptions options = training_options(flags.place, 0, reader.batch_sizes().front());
  options.length = length_of(program, reader.source());
  options.micro_batches = flags.micro_batches;
  options.find_sample = make_sample_finder({&reader});
  set_profile(options, flags.profile);
  Trainer trainer(program, place_of(flags.place), options);
  Executor& executor = trainer.executor();
  if (const auto& choice = executor.amp_choice()) {
    print_to(stderr, "--amp auto selects {}\n", choice->text());
  }
  std::vector<double> times;
  std::optional<Stopwatch> watch;
  const auto record_time = [&](int64_t step) {
    if (step < flags.warmup || (step - flags.warmup) % flags.steps != 0) return;
    if (watch) times.push_back(watch->ms() / static_cast<double>(flags.steps));
    watch.emplace();
  };
  trainer.fit(reader, {.recipes = recipes,
                       .epochs = std::numeric_limits<int64_t>::max(),
                       .max_steps = flags.warmup + flags.repeat * flags.steps,
                       .on_begin = [&](const BeginEvent&) { record_time(0); },
                       .on_step = [&](const StepEvent& event) { record_time(event.step); },
                       .notice = [](const std::string&) {}});
  std::ranges::sort(times);
  const double median = times[times.size() / 2];
  const auto batch = static_cast<double>(reader.batch_sizes().front());
  fmt::print("{:.4f} ms/step (median of {} x {} steps, {:.4f} to {:.4f}), {:.0f} samples/s\n",
             median, flags.repeat, flags.steps, times.front(), times.back(), 1e3 * batch / median);
  report_profile(executor, flags.profile);
}

void bench_inference(const BenchFlags& flags, Program program, Mode mode) {
  if (!flags.recipes.empty() || flags.micro_batches != 1 || changes_optimizer(flags.optimizer)) {
    throw UserError(
        "--recipes, --micro-batches and the optimizer's options are for --pipeline train");
  }
  InferenceBench{.mode = mode,
                 .data = flags.data,
                 .batch = flags.batch,
                 .length = flags.length,
                 .reading = flags.reading,
                 .profile = flags.profile,
                 .warmup = flags.warmup,
                 .steps = flags.steps * flags.repeat}
      .run(std::move(program), place_of(flags.place), executor_options(flags.place));
}

int run(const BenchFlags& flags) {
  Program program = open_program(flags.program);
  set_optimizer(program, flags.optimizer);
  set_parameters(program, flags.parameters);
  const Mode mode = parse_step_mode(flags.mode);
  if (flags.length && !flags.data.empty()) {
    throw UserError("--length is for random numbers: --data gives the length");
  }
  if (mode == Mode::train) {
    bench_training(flags, program);
  } else {
    bench_inference(flags, std::move(program), mode);
  }
  return 0;
}

}  // namespace

void add_bench(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("bench", "Time training steps with data reading, or inference");
  const auto flags = std::make_shared<BenchFlags>();
  add_program_argument(*command, flags->program);
  begin_group(*command, kDataGroup);
  command
      ->add_option(
          "--data", flags->data,
          "training data; for eval and predict a batch, repeated (default: random numbers)")
      ->type_name("SPEC");
  add_data_batch_flag(*command, flags->batch);
  add_length_flag(*command, flags->length);
  add_reading_flags(*command, flags->reading);
  begin_group(*command, kTrainingGroup);
  command->add_option("--pipeline", flags->mode, "steps to time")
      ->type_name("train|eval|predict")
      ->capture_default_str();
  add_recipes_flag(*command, flags->recipes);
  command->add_option("--steps", flags->steps, "steps per timing")
      ->check(validate_positive_integer)
      ->type_name("N")
      ->capture_default_str();
  command->add_option("--warmup", flags->warmup, "steps before the first timing")
      ->check(validate_nonnegative_integer)
      ->type_name("N")
      ->capture_default_str();
  command->add_option("--repeat", flags->repeat, "timings; their median is printed")
      ->check(validate_positive_integer)
      ->type_name("N")
      ->capture_default_str();
  add_optimizer_flags(*command, flags->optimizer);
  add_parameter_flags(*command, flags->parameters);
  add_place_flags(*command, flags->place);
  add_loss_scale_flags(*command, flags->place.amp.loss_scale);
  add_memory_flag(*command, flags->place);
  add_micro_batches_flag(*command, flags->micro_batches);
  add_profile_flags(*command, flags->profile);
  command->footer(
      "Examples:\n  fluidrun bench mnist_fluid --data digits --batch 100\n"
      "  fluidrun bench resnet50 --pipeline predict --batch 1\n\n" +
      data_help() + "\n" + pattern_help());
  command->callback([&action, flags] {
    flags->reading.cache_dir = flags->place.cache_dir;
    action = [flags] { return run(*flags); };
  });
}

}  // namespace fluid
