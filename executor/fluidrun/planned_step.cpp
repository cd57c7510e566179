#include "executor/fluidrun/planned_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "executor/cpu/cpu_target.h"
#include "executor/device/bytes_text.h"
#include "executor/session/prepared_step.h"
#include "ops/optim/recipes.h"
#include "passes/precompute_weights.h"

namespace fluid {

const PlannedProgram& PlannedStep::largest() const {
  return *std::ranges::max_element(micro_batches, {},
                                   [](const auto& p) { return p.memory.transient; });
}

PlannedStep StepPlanner::plan_step(int64_t batch) const {
  PlannedStep step;
  step.regions.feed_slots = options_.feed_slots(target_);
  Options whole = options_.passes;
  whole.batch = batch;
  const std::vector<std::string> recipes = trainable_recipes(program_.ir().main());
  if (whole.mode != Mode::train || recipes.empty()) {
    add_step(whole, step);
  } else {
    for (const std::string& recipe : recipes) {
      whole.recipe = recipe;
      add_step(whole, step);
    }
  }
  add_startup_program(step);
  step.regions.state = step.variables.bytes();
  return step;
}

/// Compiles the programs of a step, one for each kind and size of micro-batch. Adds the programs
/// and their memory to `step`. `step_options`: pass options of the whole step.
void StepPlanner::add_step(const Options& step_options, PlannedStep& step) const {
  const int64_t count = step_options.mode == Mode::train ? options_.micro_batches : 1;
  RegionSizes& regions = step.regions;
  int64_t outputs = 0;
  const size_t first = step.micro_batches.size();
  std::set<std::pair<MicroBatchKind, int64_t>> planned;
  for (const MicroBatch& micro_batch : split_into_micro_batches(step_options.batch, count)) {
    if (!planned.insert({micro_batch.kind, micro_batch.samples}).second) continue;
    const Options options = micro_batch.options(step_options);
    step.micro_batches.push_back(plan(program_.ir(), pipeline(options), options));
    const MemoryPlan& memory = step.micro_batches.back().memory;
    regions.feeds = std::max(regions.feeds, align_up(memory.feeds));
    outputs = std::max(outputs, align_up(memory.outputs));
    regions.transient = std::max(regions.transient, align_up(memory.transient));
    if (const auto& weights = step.micro_batches.back().weight_program)
      add_weight_variables(*plan_init_program(*weights, {}, step), program_.ir(), options.rank,
                           step.variables);
    add_variables(*step.micro_batches.back().program, program_.ir(), step_options.rank,
                  step.variables);
  }
  if (planned.size() > 1)
    outputs += gathered_bytes(*step.micro_batches[first].program, step_options.batch);
  regions.outputs = std::max(regions.outputs, outputs);
}

StepPlanner StepPlanner::without_amp() const {
  StepPlanner other = *this;
  other.options_.passes.amp.reset();
  return other;
}

/// Adds to `step` the memory of the startup program, which initializes variables, and the memory of
/// the variables that no micro-batch reads.
void StepPlanner::add_startup_program(PlannedStep& step) const {
  Options options = options_.passes;
  options.mode = Mode::init;
  options.batch = 1;
  for (const Variable& v : recorded_variables(program_.ir(), options)) {
    step.variables.add(v.name, v.type, v.kind);
  }
  std::vector<const ir::Program*> programs = {&program_.ir()};
  for (const PlannedProgram& planned : step.micro_batches)
    programs.push_back(planned.program.get());
  std::set<std::string> wanted;
  for (const Variable& v : step.variables.all()) {
    if (is_initialised(v)) wanted.insert(v.name);
  }
  const StartupPlan first_values = plan_startup_values(wanted, step.variables, programs);
  if (first_values.computed.empty()) return;
  const auto startup = startup_program(program_.ir().name, first_values.computed);
  add_variables(*plan_init_program(*startup, first_values.computed_names(), step), program_.ir(),
                options.rank, step.variables);
}

/// Compiles a program that runs before the step: the startup program, or the program of the
/// precomputed weights. Adds its transient memory to `step`. `variables`: names of the variables
/// that the program writes.
std::unique_ptr<ir::Program> StepPlanner::plan_init_program(const ir::Program& program,
                                                            std::set<std::string> variables,
                                                            PlannedStep& step) const {
  Options options = options_.passes;
  options.mode = Mode::init;
  options.batch = 1;
  options.init_variables = std::move(variables);
  PlannedProgram planned = plan(program, startup_pipeline(options), options);
  step.regions.transient = std::max(step.regions.transient, align_up(planned.memory.transient));
  return std::move(planned.program);
}

PlannedProgram StepPlanner::plan(const ir::Program& program, const std::vector<Pass>& passes,
                                 const Options& options) const {
  PlannedProgram planned{
      .program = program.clone(), .weight_program = {}, .memory = {}, .batch = options.batch};
  run_passes(*planned.program, passes, options, target_);
  planned.weight_program = extract_weight_program(*planned.program);
  planned.memory = memory_plan(*planned.program, options);
  return planned;
}

std::string f32_comparison_text(const StepPlanner& planner, int64_t batch, int64_t arena_bytes) {
  const int64_t f32 = planner.without_amp().plan_step(batch).arena_bytes();
  const auto size = [](int64_t bytes) { return bytes_text(static_cast<double>(bytes)); };
  const int64_t more = arena_bytes - f32;
  return fmt::format("f32 needs {}: mixed precision {} {}", size(f32),
                     more > 0 ? "needs more, by" : "saves", size(std::abs(more)));
}

std::string half_instructions_text(const Target& target, DType half) {
  const auto* cpu = dynamic_cast<const CpuTarget*>(&target);
  const std::string prefix = std::string(name_of(half)) + "_";
  if (cpu == nullptr || std::ranges::any_of(cpu->description().gops, [&](const auto& entry) {
        return entry.first.starts_with(prefix);
      })) {
    return "";
  }
  return fmt::format("this CPU has no {} instructions: mixed precision saves no time",
                     name_of(half));
}

}  // namespace fluid
