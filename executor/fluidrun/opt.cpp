#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>

#include "executor/fluidrun/amp.h"
#include "executor/fluidrun/command.h"
#include "executor/fluidrun/flags.h"
#include "executor/fluidrun/help.h"
#include "executor/fluidrun/inputs.h"
#include "executor/fluidrun/recipe_flags.h"
#include "executor/launcher/print_to.h"
#include "executor/options/option_checks.h"
#include "executor/places/place_machine.h"
#include "executor/session/prepared_step.h"
#include "executor/session/session_options.h"
#include "ir/error.h"
#include "passes/pass.h"
#include "passes/pass_table.h"

namespace fluid {
namespace {

struct OptFlags {
  std::string program, passes, mode, recipe, output;
  int64_t batch = 1, micro_batches = 1;
  std::optional<int64_t> length;
  std::optional<int> world;
  int rank = 0;
  std::string micro_batch;
  CollectiveFlags collectives;
  bool list = false, print_after_all = false, time_passes = false, report = false;
  PlaceFlags place;
};

std::vector<Pass> passes_named(const std::string& list) {
  std::vector<Pass> chosen;
  std::vector<std::string> names;
  for (const Pass& pass : all_passes()) names.push_back(pass.name);
  for (const std::string& name : CLI::detail::split(list, ',')) {
    const auto& all = all_passes();
    const auto found = std::ranges::find(all, name, &Pass::name);
    if (found == all.end()) throw UserError("no pass '" + name + "'" + did_you_mean(name, names));
    chosen.push_back(*found);
  }
  if (const std::string fault = order_error(chosen); !fault.empty()) throw UserError(fault);
  return chosen;
}

/// Prints the dtype that amp_cast would choose for each op. Runs the passes before amp_cast on a
/// copy of `program`.
void print_amp_choices(const ir::Program& program, const std::vector<Pass>& passes,
                       const Options& options, const Target& target) {
  const auto amp = std::ranges::find(passes, amp_cast_pass().name, &Pass::name);
  if (amp == passes.end()) throw UserError("--report: amp_cast is not among the passes");
  const std::unique_ptr<ir::Program> copy = program.clone();
  run_passes(*copy, {passes.begin(), amp}, options, target);
  print_amp_report(*copy, options);
}

/// The pass options of the micro-batch that --slice selects. `step`: the pass options of the whole
/// step.
Options micro_batch_options(const OptFlags& flags, const Options& step) {
  if (flags.micro_batches == 1) {
    if (!flags.micro_batch.empty()) throw UserError("--slice: needs --micro-batches");
    return step;
  }
  const std::map<std::string, MicroBatchKind> slices = {{"first", MicroBatchKind::first},
                                                        {"middle", MicroBatchKind::middle},
                                                        {"last", MicroBatchKind::last}};
  const auto found = slices.find(flags.micro_batch.empty() ? "last" : flags.micro_batch);
  if (found == slices.end()) {
    throw UserError("no micro-batch '" + flags.micro_batch + "'; --slice is first, middle or last");
  }
  for (const MicroBatch& slice : split_into_micro_batches(step.batch, flags.micro_batches)) {
    if (slice.kind == found->second) return slice.options(step);
  }
  throw UserError(fmt::format("a batch of {} in {} micro-batches has no {} one", step.batch,
                              flags.micro_batches, flags.micro_batch));
}

/// The pass options that `fluidrun train` uses with the same flags.
Options pass_options(const OptFlags& flags) {
  ExecutorOptions train_options;
  train_options.precision.dtype = program_dtype(flags.place);
  AmpFlags amp = flags.place.amp;
  if (flags.report && amp.level.empty()) amp.level = "o1";
  train_options.precision.amp = amp_options(amp);
  train_options.micro_batches = flags.micro_batches;
  train_options.distributed.world.size = flags.world.value_or(1);
  train_options.distributed.world.rank = flags.rank;
  if (flags.rank >= train_options.distributed.world.size) {
    throw UserError(fmt::format("--rank {}: the last rank of {} is {}", flags.rank,
                                train_options.distributed.world.size,
                                train_options.distributed.world.size - 1));
  }
  set_collectives(train_options, flags.collectives);
  check_options(train_options);
  check_sync_bn(train_options);
  Options options = session_options(train_options).passes;
  options.batch = flags.batch;
  options.sequence_length = flags.length.value_or(1);
  options.verify_each = true;
  if (!flags.mode.empty()) options.mode = parse_mode(flags.mode);
  if (options.mode != Mode::train && flags.micro_batches > 1) {
    throw UserError("--micro-batches: only the train pipeline has micro-batches");
  }
  return micro_batch_options(flags, options);
}

/// Throws UserError for a file extension other than .fir and .fluid.
void check_extension(const std::string& path) {
  const std::string extension = std::filesystem::path(path).extension().string();
  if (extension.size() <= 1 || extension == ".fir" || extension == ".fluid") return;
  throw UserError("-o " + path + ": a program is written as .fir or .fluid, not as " + extension);
}

/// Throws UserError unless the flags select passes, a pipeline, or a conversion to another file.
void check_selection(const OptFlags& flags) {
  if (!flags.passes.empty() && !flags.mode.empty()) {
    throw UserError("--pass and --pipeline exclude each other");
  }
  if (!flags.passes.empty() || !flags.mode.empty()) return;
  if (flags.output.empty()) {
    throw UserError("opt needs --pass a,b, --pipeline train, or -o FILE to convert the program");
  }
  const char* flag = flags.report            ? "--report"
                     : flags.print_after_all ? "--print-after-all"
                     : flags.time_passes     ? "--time-passes"
                                             : nullptr;
  if (flag != nullptr) throw UserError(fmt::format("{} needs --pass or --pipeline", flag));
}

void print_dumps(const std::vector<PassReport>& reports) {
  for (const PassReport& report : reports) {
    print_to(stderr, "// {}: {}, {:.3f} ms\n{}", report.pass,
             report.changed ? "changed" : "no change", report.ms, report.dump);
  }
}

/// Prints one row per pass, in the order of execution, and a row of totals.
void print_times(const std::vector<PassReport>& reports) {
  PassReport sum{.pass = "total"};
  print_to(stderr, "{:<20} {:>10} {:>10}\n", "pass", "ms", "verify ms");
  const auto row = [](const PassReport& r) {
    print_to(stderr, "{:<20} {:>10.3f} {:>10.3f}\n", r.pass, r.ms, r.verify_ms);
  };
  for (const PassReport& report : reports) {
    row(report);
    sum.ms += report.ms;
    sum.verify_ms += report.verify_ms;
  }
  row(sum);
}

int run(const OptFlags& flags) {
  if (flags.list) {
    for (const Pass& pass : all_passes()) fmt::print("{:<18} {}\n", pass.name, pass.doc);
    return 0;
  }
  if (flags.program.empty()) throw UserError("opt needs a program, or --list");
  check_selection(flags);
  check_extension(flags.output);
  Program program = open_program(flags.program);
  if (flags.passes.empty() && flags.mode.empty()) {
    program.save(flags.output);
    return 0;
  }
  check_length_flag(program, flags.length);
  Options options = pass_options(flags);
  const bool has_recipe = flags.mode.empty()
                              ? !flags.recipe.empty()
                              : options.mode == Mode::train || options.mode == Mode::init;
  if (!has_recipe && !flags.recipe.empty()) {
    throw UserError("--recipe: pipeline " + flags.mode + " compiles no recipe");
  }
  if (has_recipe) options.recipe = select_recipe(program, flags.recipe);
  const std::vector<Pass> passes =
      flags.mode.empty() ? passes_named(flags.passes) : pipeline(options);
  const std::string sets_length = set_length_pass().name;
  if (std::ranges::find(passes, sets_length, &Pass::name) == passes.end()) {
    apply_length_flag(program, flags.length);  // no pass substitutes kLength
  }
  const std::unique_ptr<Target> target = target_of(place_of(flags.place), flags.place);
  if (flags.report) print_amp_choices(program.ir(), passes, options, *target);
  const std::vector<PassReport> reports =
      run_passes(program.ir(), passes, options, *target, flags.print_after_all);
  if (flags.print_after_all) print_dumps(reports);
  if (flags.time_passes) print_times(reports);
  if (flags.output.empty() && !flags.report) {
    fmt::print("{}", program.text());
  }
  if (!flags.output.empty()) program.save(flags.output);
  return 0;
}

}  // namespace

void add_opt(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("opt", "Run passes over a program, or convert its file");
  const auto flags = std::make_shared<OptFlags>();
  command->add_option("program", flags->program, "a .fluid or .fir file, or the name of an example")
      ->type_name("");
  begin_group(*command, kFilesGroup);
  command
      ->add_option("-o", flags->output,
                   "write the program to this .fir or .fluid file (default: stdout, as text)")
      ->type_name("FILE");
  begin_group(*command, kCompilerGroup);
  command->add_option("--pass", flags->passes, "passes to run, separated by commas")
      ->type_name("PASSES");
  command
      ->add_option("--pipeline", flags->mode,
                   "run all passes of a pipeline in order; init: the startup program")
      ->type_name("train|eval|predict|init");
  command->add_flag("--list", flags->list, "print every pass with its description");
  add_recipe_flag(*command, flags->recipe);
  add_batch_flag(*command, flags->batch);
  add_length_flag(*command, flags->length);
  begin_group(*command, kDistributedGroup);
  command->add_option("--world", flags->world, "number of data-parallel ranks")
      ->check(validate_positive_integer)
      ->check(CLI::Range(1, 1 << 20).description(""))
      ->type_name("N");
  command->add_option("--rank", flags->rank, "rank to compile for; ranks differ with --zero 1")
      ->check(validate_nonnegative_integer)
      ->type_name("N")
      ->capture_default_str();
  add_collective_flags(*command, flags->collectives);
  add_place_flags(*command, flags->place);
  add_loss_scale_flags(*command, flags->place.amp.loss_scale);
  add_micro_batches_flag(*command, flags->micro_batches);
  command
      ->add_option("--slice", flags->micro_batch,
                   "micro-batch to compile; micro-batches differ in the accumulators they "
                   "initialize and the parameters they update (default: last)")
      ->type_name("first|middle|last");
  begin_group(*command, kDebuggingGroup);
  command->add_flag("--print-after-all", flags->print_after_all,
                    "print to stderr what each pass changed");
  command->add_flag("--time-passes", flags->time_passes,
                    "print to stderr the time of each pass and of its verification");
  command->add_flag("--report", flags->report,
                    "print the dtype that amp_cast gives each op, and the reason. Uses o1 without "
                    "--amp. Writes the program only with -o");
  command->footer(
      "Examples:\n"
      "  fluidrun opt mnist.fluid --pipeline train --batch 100 -o step.fir\n"
      "  fluidrun opt mnist.fluid -o mnist.fir\n\n"
      "Notes:\n"
      "  With -o, and without --pass and --pipeline, opt converts between .fluid and .fir.");
  command->callback([&action, flags] { action = [flags] { return run(*flags); }; });
}

}  // namespace fluid
