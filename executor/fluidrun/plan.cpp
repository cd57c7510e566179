#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "executor/cpu/cpu_target.h"
#include "executor/device/bytes_text.h"
#include "executor/fluidrun/command.h"
#include "executor/fluidrun/flags.h"
#include "executor/fluidrun/help.h"
#include "executor/fluidrun/inputs.h"
#include "executor/fluidrun/optimizer_flags.h"
#include "executor/fluidrun/parameter_flags.h"
#include "executor/fluidrun/plan_world.h"
#include "executor/fluidrun/planned_step.h"
#include "executor/fluidrun/recipe_flags.h"
#include "executor/gpu/gpu_target.h"
#include "executor/gpu_driver/backend.h"
#include "executor/gpu_driver/gpu_description.h"
#include "executor/gpu_libraries/algorithm_record.h"
#include "executor/options/option_checks.h"
#include "executor/places/place_machine.h"
#include "executor/profile/call_info.h"
#include "executor/session/session_options.h"
#include "ir/atomic_file.h"
#include "ir/error.h"
#include "ops/scan.h"
#include "passes/memory_plan.h"
#include "passes/pass.h"

namespace fluid {
namespace {

constexpr int64_t kMaxBatch = int64_t{1} << 24;

struct PlanFlags {
  std::string program, recipe, target, memory, mode = "train";
  int64_t batch = 1, micro_batches = 1;
  std::optional<int64_t> length;
  bool kernels = false, json = false;
  OptimizerFlags optimizer;
  ParameterFlags parameters;
  PlanWorldFlags world;
  PlaceFlags place;
};

/// Prints the number of library kernels and the number of generated kernels. Counts the kernels in
/// the body of a scan once. With `list`, also prints each kernel with its predicted time. `gpu`:
/// the GPU of this machine for which the step is planned, or nullopt. `rejected`: messages about
/// ops that a library could not compute.
void print_kernels(const PlannedProgram& step, std::optional<Place> gpu,
                   const ExecutorOptions& train_options, const std::vector<std::string>& rejected,
                   bool list) {
  std::vector<std::string> libraries, generated;
  const ir::Program& program = *step.program;
  std::vector<const ir::Op*> kernels;  // kernels of the main graph and of each scan body
  for (const auto& op : program.main().ops) kernels.push_back(op.get());
  for (const ir::Graph* body : scan_bodies(program.main())) {
    for (const auto& op : body->ops) kernels.push_back(op.get());
  }
  for (const ir::Op* op : kernels) {
    const Attr* body = op->attrs.find("body");
    if (body == nullptr || is_scan(*op)) continue;
    std::string line = ops_text(*program.find(std::get<GraphRef>(*body).name));
    if (const auto& layout = op->results[0].type.layout) line += ", " + layout->str();
    if (op->loc.is_known()) line += " @ " + op->loc.str();
    if (!op->attrs.has("kernel")) {
      generated.push_back("generated: " + line);
      continue;
    }
    const auto& ns = op->attrs.get<std::vector<int64_t>>("predicted_ns");
    libraries.push_back(fmt::format(
        "{}: {}; {} {:.3f} ms, generated {:.3f} ms", op->attrs.get<std::string>("kernel"), line,
        op->attrs.has("measured") ? "measured" : "predicted", static_cast<double>(ns.at(0)) / 1e6,
        static_cast<double>(ns.at(1)) / 1e6));
    if (gpu)
      libraries.back() += "; " + recorded_algorithm_text(*gpu, *op, step.batch, train_options);
  }
  fmt::print("kernels: {} of libraries, {} generated\n", libraries.size(), generated.size());
  if (!list) return;
  for (const auto& lines : {libraries, generated, rejected}) {
    for (const std::string& line : lines) fmt::print("  {}\n", line);
  }
}

/// The largest batch size whose planned step has an arena of at most `limit` bytes; 0 if no batch
/// size fits.
int64_t largest_batch(const StepPlanner& planner, int64_t limit) {
  const auto fits = [&](int64_t batch) {
    try {
      return planner.plan_step(batch).arena_bytes() <= limit;
    } catch (const BatchTooLarge&) {
      return false;
    }
  };
  int64_t fitting = 0, too_large = 1;
  while (too_large <= kMaxBatch && fits(too_large)) {
    fitting = too_large;
    too_large *= 2;
  }
  while (too_large - fitting > 1) {
    const int64_t middle = fitting + (too_large - fitting) / 2;
    (fits(middle) ? fitting : too_large) = middle;
  }
  return fitting;
}

/// The ExecutorOptions of one rank of `fluidrun train` with the same flags.
ExecutorOptions run_options(const PlanFlags& flags) {
  ExecutorOptions options = training_options(flags.place, 0, flags.batch);
  options.batch = flags.batch;
  options.micro_batches = flags.micro_batches;
  options.distributed.world.size = static_cast<int>(flags.world.world.value_or(1));
  set_collectives(options, flags.world.collectives);
  check_sync_bn(options);
  return options;
}

/// The AMP level that an earlier run with --amp auto recorded on this machine. Without a record,
/// returns nullopt, or throws UserError if `flags` contain --amp auto.
std::optional<AmpChoice> recorded_amp_choice(const PlanFlags& flags, const Program& program,
                                             Place place, const ExecutorOptions& options) {
  std::optional<AmpChoice> choice;
  if (flags.target.empty() && !options.precision.dtype)
    choice = cached_amp_choice(program, place, options);
  if (options.precision.choose_amp && !choice) {
    throw UserError(
        "--amp auto: this machine has no measurement of this program and batch: run train or bench "
        "with --amp auto first, or choose o1, o2 or off");
  }
  return choice;
}

/// The device, compile target and memory limit for which a step is planned.
struct PlanTarget {
  Place place;
  std::unique_ptr<Target> target;
  std::string name;
  std::optional<MemoryLimit> memory;  ///< memory of the device; nullopt: unknown
  bool libraries_known = true;
};

/// The device that --place selects on the machine of the --target file. `description`: text of the
/// --target file.
Place place_on_target(const PlanFlags& flags, const std::string& description) {
  const std::string& name = flags.place.place;
  if (name != "auto" && name != "cuda") return place_of(flags.place);
  const std::optional<int> gpu = first_supported_gpu(description, flags.target);
  if (!gpu && name == "auto") return cpu();
  return cuda(gpu.value_or(0));
}

PlanTarget plan_target(const PlanFlags& flags, const GpuLibraryOptions& libraries) {
  if (flags.target.empty()) {
    const Place place = place_of(flags.place, flags.world.bandwidth.has_value());
    std::unique_ptr<Target> target = target_of(place, flags.place);
    return {place, std::move(target), place.str(), memory_limit_of(place)};
  }
  if (flags.place.tune) {
    throw UserError("--tune times kernels on this machine: it cannot be given with --target");
  }
  const std::string description = read_file(flags.target);
  const Place place = place_on_target(flags, description);
  if (place.kind == Place::Kind::cuda) {
    const FluidGpuDescription gpu = gpu_from_json(description, flags.target, place.index);
    if (const std::string why = unsupported_reason(gpu); !why.empty()) {
      throw UserError(flags.target + ": " + why);
    }
    const std::string has = place.str() + " has " + bytes_text(static_cast<double>(gpu.memory));
    return {place, std::make_unique<GpuTarget>(gpu, libraries),
            fmt::format("{}, {}", place.str(), gpu.name), MemoryLimit{gpu.memory, has}};
  }
  auto target = std::make_unique<CpuTarget>(target_from_json(description, flags.target));
  const std::string name = target->name();
  const bool known = target->matches_host_isa();
  return {place, std::move(target), name, std::nullopt, known};
}

/// The output of `fluidrun plan --json`. Sizes are in bytes.
std::string json_of(const PlannedStep& step, const PlanFlags& flags, const Program& program,
                    const std::string& target, int64_t fitting) {
  const PlannedProgram& peak = step.largest();
  nlohmann::ordered_json at_peak = {{"op", peak.memory.peak}};
  for (const auto& [category, bytes] : peak.memory.at_peak) at_peak[name_of(category)] = bytes;
  nlohmann::ordered_json json = {{"program", program.ir().name},
                                 {"pipeline", flags.mode},
                                 {"target", target},
                                 {"batch", flags.batch},
                                 {"arena_bytes", step.arena_bytes()},
                                 {"state_bytes", step.regions.state},
                                 {"feed_bytes", step.regions.feeds},
                                 {"feed_slots", step.regions.feed_slots},
                                 {"output_bytes", step.regions.outputs},
                                 {"transient_bytes", step.regions.transient},
                                 {"at_peak", at_peak}};
  if (flags.length) json["length"] = *flags.length;
  if (fitting > 0) json["largest_batch"] = fitting;
  return json.dump(1);
}

void print_memory(const PlannedStep& step, const std::optional<MemoryLimit>& limit) {
  const auto text = [](int64_t bytes) { return bytes_text(static_cast<double>(bytes)); };
  const auto line = [&](const auto& what, int64_t bytes, const std::string& more = "") {
    fmt::print("  {:<12} {:>12}{}\n", what, text(bytes), more);
  };
  const PlannedProgram& peak = step.largest();
  const bool fits = !limit || step.arena_bytes() <= limit->bytes;
  line("arena", step.arena_bytes(), fits ? "" : "  does not fit: " + limit->text);
  line("state", step.regions.state);
  line("feeds", step.regions.feed_slots * step.regions.feeds,
       step.regions.feed_slots == 1 ? "" : fmt::format("  (two of {})", text(step.regions.feeds)));
  line("outputs", 2 * step.regions.outputs,
       fmt::format("  (two of {})", text(step.regions.outputs)));
  line("transient", step.regions.transient);
  fmt::print("in use at the peak, at {}\n", peak.memory.peak);
  for (const auto& [category, bytes] : peak.memory.at_peak) {
    const bool in_slots = category == RangeCategory::feed || category == RangeCategory::output;
    line(name_of(category), bytes, in_slots ? "  (of one slot)" : "");
  }
}

int run(const PlanFlags& flags) {
  Program program = open_program(flags.program);
  set_optimizer(
      program, flags.optimizer,
      flags.recipe.empty() ? "" : recipe_called(program, flags.recipe, "--recipe " + flags.recipe));
  set_parameters(program, flags.parameters);
  apply_length_flag(program, flags.length);
  const bool needs_one_recipe = !flags.recipe.empty() || flags.world.world;
  if (parse_step_mode(flags.mode) == Mode::train) {
    if (needs_one_recipe) select_recipe(program, flags.recipe);
  } else if (!flags.recipe.empty()) {
    throw UserError("--recipe: a step of mode " + flags.mode + " compiles no recipe");
  }
  ExecutorOptions train_options = run_options(flags);
  const auto [place, target, name, memory, libraries_known] =
      plan_target(flags, {train_options.gpu.workspace, train_options.gpu.tf32});
  const std::optional<AmpChoice> choice = recorded_amp_choice(flags, program, place, train_options);
  if (train_options.precision.choose_amp)
    train_options.precision.amp = amp_options_of(*choice, train_options.precision.amp);
  SessionOptions session = session_options(train_options);
  const Options& options = session.passes;
  session.passes.mode = parse_step_mode(flags.mode);
  check_plan_world_flags(flags.world, program, options.mode, place, !flags.target.empty());
  const bool trains = options.mode == Mode::train;
  const int64_t limit = flags.memory.empty() ? 0 : parse_bytes(flags.memory);
  const StepPlanner planner(program, *target, session);
  const PlannedStep step = planner.plan_step(flags.batch);
  const std::vector<std::string> rejected = target->rejection_messages();
  // Plans of other steps only estimate their memory, for which no kernels need to be timed.
  const std::unique_ptr<Target> predicting =
      flags.place.tune ? predicting_target_of(place, flags.place) : nullptr;
  const StepPlanner estimates(program, predicting ? *predicting : *target, session);
  const int64_t fitting = limit > 0 ? largest_batch(estimates, limit) : 0;
  if (limit > 0 && fitting == 0) throw UserError("not even a batch of 1 fits " + flags.memory);
  if (flags.json) {
    fmt::print("{}\n", json_of(step, flags, program, name, fitting));
    return 0;
  }
  fmt::print("one step of '{}' ({}) on {}, batch {}{}\n", program.ir().name, flags.mode, name,
             flags.batch, flags.length ? fmt::format(", length {}", *flags.length) : "");
  if (!libraries_known) {
    fmt::print(
        "  planned without library kernels: the target has another instruction set than this "
        "CPU\n");
  }
  print_memory(step, memory);
  if (options.amp && trains) {
    fmt::print("{}\n", f32_comparison_text(estimates, flags.batch, step.arena_bytes()));
    const std::string note = half_instructions_text(*target, options.amp->dtype);
    if (!note.empty()) fmt::print("{}\n", note);
  }
  if (choice && trains) fmt::print("--amp auto selects {}\n", choice->text());
  const bool here = place.kind == Place::Kind::cuda && flags.target.empty();
  print_kernels(step.largest(), here ? std::optional(place) : std::nullopt, train_options, rejected,
                flags.kernels);
  print_planned_collectives(flags.world, program, train_options, step);
  if (fitting > 0) fmt::print("largest batch within {}: {}\n", flags.memory, fitting);
  return 0;
}

}  // namespace

void add_plan(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("plan", "Print the memory and the kernels of a step");
  const auto flags = std::make_shared<PlanFlags>();
  add_program_argument(*command, flags->program);
  add_batch_flag(*command, flags->batch);
  add_length_flag(*command, flags->length);
  begin_group(*command, kCompilerGroup);
  command->add_option("--pipeline", flags->mode, "pipeline of the step")
      ->type_name("train|eval|predict")
      ->capture_default_str();
  add_recipe_flag(*command, flags->recipe);
  command
      ->add_option("--target", flags->target,
                   "plan for the machine described in this file, written by `devices --json`; "
                   "--place selects its device")
      ->type_name("FILE");
  CLI::Option* const kernels =
      command->add_flag("--kernels", flags->kernels, "list the kernels with their predicted times");
  add_optimizer_flags(*command, flags->optimizer);
  add_parameter_flags(*command, flags->parameters);
  add_plan_world_flags(*command, flags->world);
  add_place_flags(*command, flags->place);
  begin_group(*command, kMemoryGroup);
  command
      ->add_option("--memory", flags->memory,
                   "print the largest batch that fits this memory, for example 8GiB")
      ->type_name("BYTES");
  add_micro_batches_flag(*command, flags->micro_batches);
  begin_group(*command, kCompilerGroup);
  command->add_flag("--json", flags->json, "print the memory only, in bytes, as JSON")
      ->excludes(kernels, command->get_option("--bandwidth"));
  command->footer("Examples:\n  fluidrun plan mnist.fluid --batch 100 --memory 1GiB\n\n" +
                  pattern_help());
  command->callback([&action, flags] { action = [flags] { return run(*flags); }; });
}

}  // namespace fluid
