#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>

#include "executor/fluidrun/command.h"
#include "executor/fluidrun/eval_report.h"
#include "executor/fluidrun/flags.h"
#include "executor/fluidrun/help.h"
#include "executor/fluidrun/inputs.h"
#include "executor/fluidrun/memory_report.h"
#include "executor/trainer/inference.h"
#include "executor/trainer/required_columns.h"
#include "executor/trainer/running_means.h"
#include "executor/trainer/trainer.h"

namespace fluid {
namespace {

struct EvalFlags {
  std::string program, data;
  ParamsFlags params;
  int64_t batch = 0;
  uint64_t seed = 0;
  ReadingFlags reading;
  PlaceFlags place;
  ProfileFlags profile;
  ReportFlags report;
};

int run(const EvalFlags& flags) {
  const ResidentMemory before = resident_memory();
  Program program = open_program(flags.program, flags.params);
  std::optional<EvaluationReport> report = start_report(program, flags.report);
  Reader reader = open_reader(program, flags.data, "test", flags.batch, {}, false, flags.reading,
                              {}, training_table(flags.params, flags.data));
  check_evaluation_columns(program, reader.source());
  const ResidentMemory opened = resident_memory();
  ExecutorOptions options = executor_options(flags.place, flags.seed);
  set_profile(options, flags.profile);
  Trainer trainer(program, place_of(flags.place), options);
  Executor& executor = trainer.executor();
  load_parameters(program, flags.params, executor);
  executor.prepare(
      {.eval = reader.batch_sizes(), .lengths = lengths_of(executor, reader.source())});
  print_memory_report(executor, {&reader}, before, opened);
  const BatchObserver observer = report ? report->observer(reader) : nullptr;
  for (const auto& [name, value] : trainer.evaluate(reader, observer)) {
    if (EvaluationReport::is_report_output(name)) continue;
    fmt::print("{} {:.9g}\n", name, clear_nan_sign(value));
  }
  if (report) print_report(*report, flags.report);
  print_skipped_records(reader, flags.data);
  print_untrained_note(executor, flags.params);
  report_profile(executor, flags.profile);
  return 0;
}

}  // namespace

void add_eval(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("eval", "Evaluate a program's outputs over data");
  const auto flags = std::make_shared<EvalFlags>();
  add_program_argument(*command, flags->program);
  begin_group(*command, kDataGroup);
  command->add_option("--data", flags->data, "data to evaluate (default split: test)")
      ->type_name("SPEC")
      ->required();
  add_data_batch_flag(*command, flags->batch);
  add_reading_flags(*command, flags->reading);
  add_params_flags(*command, flags->params);
  add_seed_flag(*command, flags->seed);
  add_place_flags(*command, flags->place);
  add_memory_flag(*command, flags->place);
  add_profile_flags(*command, flags->profile);
  add_report_flags(*command, flags->report);
  command->footer(
      "Examples:\n"
      "  fluidrun eval mnist_fluid --params mnist.safetensors --data digits\n\n"
      "Notes:\n"
      "  A metric such as accuracy is exact over all samples.\n"
      "  Any other output is the mean over steps, weighted by samples per step. It is exact for a "
      "mean over samples; a sum depends on --batch.\n\n" +
      data_help());
  command->callback([&action, flags] {
    flags->reading.cache_dir = flags->place.cache_dir;
    action = [flags] { return run(*flags); };
  });
}

}  // namespace fluid
