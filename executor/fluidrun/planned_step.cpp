#include "executor/fluidrun/planned_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "executor/device/bytes_text.h"
#include "executor/session/prepared_step.h"

namespace fluid {

const PlannedProgram& PlannedStep::largest() const {
  return *std::ranges::max_element(parts, {}, [](const auto& p) { return p.memory.transient; });
}

PlannedStep StepPlanner::at(int64_t batch) const {
  PlannedStep step;
  Options whole = options_.passes;
  whole.batch = batch;
  const int64_t slices = whole.mode == Mode::train ? options_.micro_batches : 1;
  Regions& regions = step.regions;
  regions.feed_slots = options_.feed_slots(target_);
  std::set<std::pair<MicroBatchKind, int64_t>> planned;
  for (const MicroBatch& slice : split_into_micro_batches(batch, slices)) {
    if (!planned.insert({slice.slice, slice.samples}).second) continue;
    const Options options = slice.options(whole);
    step.parts.push_back(plan(program_.ir(), pipeline(options), options));
    const MemoryPlan& memory = step.parts.back().memory;
    regions.feeds = std::max(regions.feeds, aligned(memory.feeds));
    regions.outputs = std::max(regions.outputs, aligned(memory.outputs));
    regions.transient = std::max(regions.transient, aligned(memory.transient));
    add_variables(*step.parts.back().program, program_.ir(), whole.rank, step.variables);
  }
  add_startup(step);
  regions.state = step.variables.bytes();
  if (step.parts.size() > 1) regions.outputs += gathered_bytes(*step.parts.front().program, batch);
  return step;
}

StepPlanner StepPlanner::in_f32() const {
  StepPlanner other = *this;
  other.options_.passes.amp.reset();
  return other;
}

/// Adds the startup program, and the variables that no part reads.
void StepPlanner::add_startup(PlannedStep& step) const {
  Options options = options_.passes;
  options.mode = Mode::init;
  options.batch = 1;
  for (const Variable& v : recorded_variables(program_.ir(), options)) {
    step.variables.add(v.name, v.type, v.kind);
  }
  std::vector<const ir::Program*> programs = {&program_.ir()};
  for (const PlannedProgram& part : step.parts) programs.push_back(part.program.get());
  std::set<std::string> wanted;
  for (const Variable& v : step.variables.all()) {
    if (is_initialised(v)) wanted.insert(v.name);
  }
  const Startup first_values = startup_of(wanted, step.variables, programs);
  if (first_values.filled.empty()) return;
  options.fill = first_values.names_of_filled();
  const auto program = startup_program(program_.ir().name, first_values.filled);
  const PlannedProgram startup = plan(*program, startup_pipeline(options), options);
  step.regions.transient = std::max(step.regions.transient, aligned(startup.memory.transient));
  add_variables(*startup.program, program_.ir(), options.rank, step.variables);
}

PlannedProgram StepPlanner::plan(const ir::Program& program, const std::vector<Pass>& passes,
                                 const Options& options) const {
  PlannedProgram part{program.clone(), {}, options.batch};
  run_passes(*part.program, passes, options, target_);
  part.memory = memory_plan(*part.program, options);
  return part;
}

std::string compared_to_f32(const StepPlanner& planner, int64_t batch, int64_t total) {
  const int64_t f32 = planner.in_f32().at(batch).total();
  const auto size = [](int64_t bytes) { return bytes_text(static_cast<double>(bytes)); };
  const int64_t more = total - f32;
  return fmt::format("f32 needs {}: mixed precision {} {}", size(f32),
                     more > 0 ? "needs more, by" : "saves", size(std::abs(more)));
}

}  // namespace fluid
