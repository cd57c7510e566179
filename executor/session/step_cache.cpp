#include "executor/session/step_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "executor/device/bytes_text.h"
#include "executor/device/forks.h"
#include "executor/device/out_of_memory.h"
#include "ir/stopwatch.h"
#include "ops/source_kind.h"
#include "passes/pass.h"
#include "passes/recipe.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

std::vector<Feed> feeds_of(const ir::Program& final_program, const MemoryPlan& plan,
                           const ir::Program& recorded) {
  std::vector<Feed> feeds;
  for (const auto& op : final_program.main().ops) {
    if (source_kind(*op) != SourceKind::feed) continue;
    const ir::Op* declared = recorded.main().find(op->name, op->symbol);
    check(declared != nullptr, [&] { return "feed '" + op->symbol + "' was not recorded"; });
    feeds.push_back({.name = op->symbol,
                     .recorded = declared->results[0].type.dtype,
                     .type = op->results[0].type,
                     .scale = declared->attrs.get_or("scale", 1.0),
                     .channels = channels_of(*declared),
                     .offset = plan.values.at(op->result()).offset,
                     .loc = declared->loc});
  }
  return feeds;
}

/// `why`, with a message that says what is lost when no step can run any more.
std::exception_ptr with_loss(const std::exception_ptr& why, bool memory_is_lost) {
  try {
    std::rethrow_exception(why);
  } catch (const LibraryRejection&) {
    return why;  // its message already says what to do
  } catch (const DeviceError& e) {
    const char* lost =
        memory_is_lost
            ? "; the contents of GPU memory are lost: restart, or resume from a checkpoint"
            : "; the prepared steps cannot be bound to their memory again, so no step can run";
    return std::make_exception_ptr(DeviceError(e.what() + std::string(lost)));
  } catch (...) {
    return why;
  }
}

PreparedStep* find_among(const std::vector<std::unique_ptr<PreparedStep>>& steps,
                         const Options& wanted) {
  for (const auto& step : steps) {
    const Options& o = step->options();
    if (o.mode == wanted.mode && o.batch == wanted.batch && o.feeds == wanted.feeds &&
        o.fill == wanted.fill) {
      return step.get();
    }
  }
  return nullptr;
}

}  // namespace

StepCache::StepCache(std::unique_ptr<ir::Program> recorded, std::unique_ptr<Device> device,
                     const SessionOptions& options)
    : recorded_(std::move(recorded)),
      device_(std::move(device)),
      options_(options),
      memory_(device_->memory({.feed_slots = options.feed_slots(device_->target())})) {}

PreparedStep* StepCache::find(const Options& wanted) const { return find_among(steps_, wanted); }

bool StepCache::has_step_for(Mode mode) const {
  return std::ranges::any_of(steps_,
                             [&](const auto& step) { return step->options().mode == mode; });
}

PreparedStep* StepCache::find_predict(const Batch& batch) const {
  PreparedStep* best = nullptr;
  for (const auto& step : steps_) {
    if (step->options().mode != Mode::predict || step->options().batch != batch.size) continue;
    const bool enough = std::ranges::all_of(
        step->feeds(), [&](const Feed& feed) { return batch.find(feed.name) != nullptr; });
    if (enough && (best == nullptr || step->outputs() > best->outputs())) best = step.get();
  }
  return best;
}

PreparedStep* StepCache::find_predict(const Batch& batch, std::span<const std::string> all) const {
  const auto is_given = [&](const std::string& feed) { return batch.find(feed) != nullptr; };
  for (const auto& step : steps_) {
    const Options& options = step->options();
    if (options.mode != Mode::predict || options.batch != batch.size) continue;
    const bool fits = options.feeds.empty() ? std::ranges::all_of(all, is_given)
                                            : options.feeds.size() == batch.columns.size() &&
                                                  std::ranges::all_of(options.feeds, is_given);
    if (fits) return step.get();
  }
  return nullptr;
}

Regions StepCache::regions_with(const MemoryPlan& plan) const {
  const Regions& now = memory_->regions();
  return {.state = std::max(now.state, plan.state),
          .feeds = std::max(now.feeds, aligned(plan.feeds)),
          .outputs = std::max(now.outputs, aligned(plan.outputs)),
          .transient = std::max(now.transient, aligned(plan.transient)),
          .feed_slots = now.feed_slots};
}

void StepCache::check_memory(const Regions& regions, int64_t batch) const {
  const MemoryLimit& limit = options_.memory;
  if (regions.total() <= limit.bytes) return;
  const std::string why = fmt::format(
      "a step of {} samples needs {}, {}; take a smaller batch, micro-batches or mixed precision",
      batch, bytes_text(static_cast<double>(regions.total())), limit.text);
  if (limit.asked) throw UserError(why);
  throw OutOfMemory(why);
}

std::unique_ptr<Part> StepCache::compile(const Options& options, int64_t batch,
                                         const ir::Program& program) {
  auto part = std::make_unique<Part>();
  part->options = options;
  const std::vector<Pass> passes =
      options.mode == Mode::init ? startup_pipeline(options) : pipeline(options);
  while (part->executable == nullptr) {
    const Stopwatch watch;
    part->program = program.clone();
    run_passes(*part->program, passes, options, device_->target());
    part->plan = memory_plan(*part->program, options);
    if (options.guard_plan) verify_plan(part->plan, *part->program, options);
    passes_ms_ += watch.ms();
    check_memory(regions_with(part->plan), batch);
    part->executable = device_->build(*part->program, part->plan, options);
  }
  part->feeds = feeds_of(*part->program, part->plan, *recorded_);
  return part;
}

/// Finds the part for a micro-batch among `parts_` and `compiled`. Compiles it into `compiled` if
/// there is none.
Part* StepCache::part_of(const MicroBatch& slice, const Options& step, const ir::Program& program,
                         Parts& compiled) {
  const Options options = slice.options(step);
  for (const auto* parts : {&parts_, &compiled}) {
    for (const auto& part : *parts) {
      const Options& o = part->options;
      if (o.mode == options.mode && o.batch == options.batch && o.slice == options.slice &&
          o.feeds == options.feeds && o.fill == options.fill) {
        return part.get();
      }
    }
  }
  compiled.push_back(compile(options, step.batch, program));
  return compiled.back().get();
}

/// Builds the startup program, which computes the initial values of variables. Skips variables that
/// have a value and variables that a step fills.
Startup StepCache::startup(const Variables& variables, const Parts& compiled,
                           const std::function<bool(const std::string&)>& has_value) const {
  const auto is_filled = [&](const std::string& name) {
    return has_value(name) || std::ranges::any_of(steps_, [&](const auto& step) {
             return step->options().fill.contains(name);
           });
  };
  std::set<std::string> wanted;
  for (const Variable& v : variables.all()) {
    if (is_initialised(v) && !is_filled(v.name)) wanted.insert(v.name);
  }
  std::vector<const ir::Program*> programs = {recorded_.get()};
  for (const auto* parts : {&parts_, &compiled}) {
    for (const auto& part : *parts) programs.push_back(part->program.get());
  }
  return startup_of(wanted, variables, programs);
}

std::unique_ptr<PreparedStep> StepCache::compile_step(const Options& options,
                                                      const ir::Program& program, Parts& compiled) {
  std::vector<PreparedStep::Run> runs;
  const int64_t slices = options.mode == Mode::train ? options_.micro_batches : 1;
  for (const MicroBatch& slice : split_into_micro_batches(options.batch, slices)) {
    runs.push_back({slice, part_of(slice, options, program, compiled)});
  }
  auto step = std::make_unique<PreparedStep>(options, std::move(runs), *recorded_);
  if (options_.profile && options.mode != Mode::init) step->record(*options_.profile);
  return step;
}

AddedSteps StepCache::add(std::span<const Options> wanted,
                          const std::function<bool(const std::string&)>& has_value,
                          const std::function<void()>& before_binding) {
  require_runnable();
  Parts compiled;
  Steps steps;
  // Compile and check the memory limit first, so that an error leaves nothing half-prepared.
  for (const Options& options : wanted) {
    if (find(options) != nullptr || find_among(steps, options) != nullptr) continue;
    steps.push_back(compile_step(options, *recorded_, compiled));
  }
  Variables variables = variables_;
  const auto add_from = [&](size_t first) {
    for (size_t i = first; i < compiled.size(); ++i) {
      add_variables(*compiled[i]->program, *recorded_, options_.passes.rank, variables);
    }
  };
  add_from(0);
  for (const Variable& v : recorded_variables()) variables.add(v.name, v.type, v.kind);
  Startup first_values = startup(variables, compiled, has_value);
  if (!first_values.filled.empty()) {
    Options fill = options_.passes;
    fill.mode = Mode::init;
    fill.batch = 1;
    fill.fill = first_values.names_of_filled();
    const size_t known = compiled.size();
    const auto program = startup_program(recorded_->name, first_values.filled);
    steps.push_back(compile_step(fill, *program, compiled));
    add_from(known);
  }
  const Regions regions = regions_with(compiled, steps, variables);
  int64_t batch = 0;
  for (const auto& step : steps) batch = std::max(batch, step->options().batch);
  check_memory(regions, batch);
  before_binding();  // binding may overwrite the slots, and growing may move them
  const bool grows = regions != memory_->regions();
  if (grows) grow(regions);
  AddedSteps added{.new_variables = variables.all().size() > variables_.all().size(),
                   .fillers = {},
                   .zeros = std::move(first_values.zeros)};
  for (const auto& step : steps) {
    if (step->options().mode == Mode::init) added.fillers.push_back(step.get());
  }
  adopt(std::move(compiled), std::move(steps), std::move(variables), grows);
  return added;
}

Regions StepCache::regions_with(const Parts& parts, const Steps& steps,
                                const Variables& variables) const {
  Regions regions = memory_->regions();
  for (const auto& part : parts) {
    regions.transient = std::max(regions.transient, aligned(part->plan.transient));
  }
  for (const auto& step : steps) {
    regions.feeds = std::max(regions.feeds, step->feed_bytes());
    regions.outputs = std::max(regions.outputs, step->output_bytes());
  }
  regions.state = std::max(regions.state, variables.bytes());
  return regions;
}

/// Adds the new steps and binds them. Rebinds all steps if the memory has `moved`.
void StepCache::adopt(Parts parts, Steps steps, Variables variables, bool moved) {
  const Variables known = std::exchange(variables_, std::move(variables));
  const size_t known_parts = parts_.size(), known_steps = steps_.size();
  std::ranges::move(parts, std::back_inserter(parts_));
  std::ranges::move(steps, std::back_inserter(steps_));
  or_rebind_steps([&] { bind(moved ? 0 : known_parts, moved ? 0 : known_steps); },
                  [&] {
                    steps_.resize(known_steps);
                    parts_.resize(known_parts);
                    variables_ = known;
                  });
}

/// Moves to a larger memory. Binds the steps to the old memory again when the move fails.
void StepCache::grow(const Regions& regions) {
  or_rebind_steps([&] {
    for (const auto& part : parts_) part->executable->unbind();
    memory_ = memory_->grown(regions);
  });
}

/// Runs `change`, which rebinds steps or replaces their memory. If `change` fails, runs `undo` and
/// binds the remaining steps again. If rebinding fails too, throws the first error.
void StepCache::or_rebind_steps(const Change& change, const Change& undo) {
  try {
    change();
  } catch (...) {
    const std::exception_ptr why = std::current_exception();
    undo();
    if (try_rebind_steps()) throw;
    give_up(steps_.empty() ? why : with_loss(why, memory_->is_lost()));
  }
}

bool StepCache::try_rebind_steps() {
  if (memory_->is_lost()) return false;
  try {
    bind(0, 0);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

void StepCache::bind(size_t first_part, size_t first_step) {
  ++bindings_;
  reported_ = reported(variables_);
  for (size_t i = first_part; i < parts_.size(); ++i) {
    parts_[i]->executable->bind(memory_->at(), variables_);
  }
  for (size_t i = first_step; i < steps_.size(); ++i) steps_[i]->bind_outputs(memory_);
}

void StepCache::rebind_steps() {
  or_rebind_steps([&] { bind(0, 0); });
}

void StepCache::require_runnable() const {
  check_not_forked();
  if (broken_) std::rethrow_exception(broken_);
}

void StepCache::give_up(const std::exception_ptr& why) {
  broken_ = why;
  std::rethrow_exception(broken_);
}

std::vector<Variable> StepCache::recorded_variables() const {
  return fluid::recorded_variables(*recorded_, options_.passes);
}

std::byte* StepCache::address_of(const Variable& variable) const {
  if (memory_->is_lost()) require_runnable();
  return memory_->at().state + variable.offset;
}

std::byte* StepCache::address_of(std::string_view name) const {
  const Variable* variable = variables_.find(name);
  return variable == nullptr ? nullptr : address_of(*variable);
}

}  // namespace fluid
