#include "executor/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "executor/bytes_text.h"
#include "executor/forks.h"
#include "executor/out_of_memory.h"
#include "ir/stopwatch.h"
#include "ops/source_kind.h"
#include "passes/half_copies.h"
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

/// Why nothing goes on, and what is lost by it.
std::exception_ptr with_loss(const std::exception_ptr& why, bool memory_is_lost) {
  try {
    std::rethrow_exception(why);
  } catch (const LibraryRefusal&) {
    return why;  // it says what to do
  } catch (const DeviceError& e) {
    const char* lost =
        memory_is_lost ? "; what the GPU's memory held is lost: start anew, or from a checkpoint"
                       : "; the steps that there were cannot be bound to their memory again, "
                         "so that none runs any more";
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

Session::Session(std::unique_ptr<ir::Program> recorded, std::unique_ptr<Device> device,
                 const SessionOptions& options)
    : recorded_(std::move(recorded)),
      device_(std::move(device)),
      options_(options),
      memory_(device_->memory({.feed_slots = options.feed_slots(device_->target())})) {}

/// Nobody asks any more what the last steps came to.
Session::~Session() {
  try {
    settle();
  } catch (const std::exception&) {
    return;
  }
}

Regions Session::regions_with(const MemoryPlan& plan) const {
  const Regions& now = memory_->regions();
  return {.state = std::max(now.state, plan.state),
          .feeds = std::max(now.feeds, aligned(plan.feeds)),
          .outputs = std::max(now.outputs, aligned(plan.outputs)),
          .transient = std::max(now.transient, aligned(plan.transient)),
          .feed_slots = now.feed_slots};
}

void Session::check_memory(const Regions& regions, int64_t batch) const {
  const MemoryLimit& limit = options_.memory;
  if (regions.total() <= limit.bytes) return;
  const std::string why = fmt::format(
      "a step of {} samples needs {}, {}; take a smaller batch, micro-batches or mixed precision",
      batch, bytes_text(static_cast<double>(regions.total())), limit.text);
  if (limit.asked) throw UserError(why);
  throw OutOfMemory(why);
}

std::unique_ptr<Part> Session::compile(const Options& options, int64_t batch,
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

PreparedStep* Session::find(Mode mode, int64_t batch, const std::set<std::string>& feeds) {
  return find_among(steps_, {.mode = mode, .batch = batch, .feeds = feeds});
}

bool Session::has_step_for(Mode mode) const {
  return std::ranges::any_of(steps_,
                             [&](const auto& step) { return step->options().mode == mode; });
}

PreparedStep* Session::find_predict(const Batch& batch) {
  PreparedStep* best = nullptr;
  for (const auto& step : steps_) {
    if (step->options().mode != Mode::predict || step->options().batch != batch.size) continue;
    const bool enough = std::ranges::all_of(
        step->feeds(), [&](const Feed& feed) { return batch.find(feed.name) != nullptr; });
    if (enough && (best == nullptr || step->outputs() > best->outputs())) best = step.get();
  }
  return best;
}

PreparedStep& Session::prepare(const Options& options) {
  prepare(std::span(&options, 1));
  return *find_among(steps_, options);
}

/// What gives first values to the variables that have none yet, and get none from elsewhere.
Startup Session::startup(const Variables& variables,
                         const std::vector<std::unique_ptr<Part>>& compiled) const {
  // With several processes only rank 0 may have loaded values, and all ranks need equal variables.
  const auto is_given = [&](const std::string& name) {
    return given_.contains(name) && !options_.passes.exchanges();
  };
  const auto is_filled = [&](const std::string& name) {
    return filled_.contains(name) || is_given(name) ||
           std::ranges::any_of(
               steps_, [&](const auto& step) { return step->options().fill.contains(name); });
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

std::unique_ptr<PreparedStep> Session::compile_step(const Options& options,
                                                    const ir::Program& program,
                                                    std::vector<std::unique_ptr<Part>>& compiled) {
  std::vector<PreparedStep::Run> runs;
  const int64_t slices = options.mode == Mode::train ? options_.micro_batches : 1;
  for (const SliceOfBatch& slice : slices_of(options.batch, slices)) {
    runs.push_back({slice, part_of(slice, options, program, compiled)});
  }
  auto step = std::make_unique<PreparedStep>(options, std::move(runs), *recorded_);
  if (options_.profile && options.mode != Mode::init) step->record(*options_.profile);
  return step;
}

/// Again, with generated code, where a library turns out not to compute what it claimed.
void Session::prepare(std::span<const Options> wanted) {
  std::string refused;
  while (true) {
    try {
      return add(wanted);
    } catch (const LibraryRefusal& refusal) {
      if (broken_) throw;
      if (refused.empty()) refused = refusal.refused();
    } catch (const OutOfMemory& failure) {
      if (refused.empty()) throw;
      throw OutOfMemory(
          fmt::format("{}; generated code has not the memory: {}", refused, failure.what()));
    } catch (const DeviceError& failure) {
      if (refused.empty()) throw;
      throw DeviceError(fmt::format("{}; nor can generated code: {}; take the place cpu", refused,
                                    failure.what()));
    }
  }
}

void Session::add(std::span<const Options> wanted) {
  refuse_forks();
  if (broken_) std::rethrow_exception(broken_);
  std::vector<std::unique_ptr<Part>> compiled;
  std::vector<std::unique_ptr<PreparedStep>> steps;
  const auto is_there = [&](const Options& o) {
    return find_among(steps_, o) != nullptr || find_among(steps, o) != nullptr;
  };
  if (!wanted.empty() && std::ranges::all_of(wanted, is_there)) return;
  settle();
  // Whatever can fail for want of memory comes first: a session never keeps half a step.
  for (const Options& options : wanted) {
    if (!is_there(options)) steps.push_back(compile_step(options, *recorded_, compiled));
  }
  Variables variables = variables_;
  const auto add_from = [&](size_t first) {
    for (size_t i = first; i < compiled.size(); ++i) {
      add_variables(*compiled[i]->program, *recorded_, options_.passes.rank, variables);
    }
  };
  add_from(0);
  for (const Variable& v : recorded_variables()) variables.add(v.name, v.type, v.kind);
  const Startup first_values = startup(variables, compiled);
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
  Regions regions = memory_->regions();
  int64_t batch = 0;
  for (const auto& part : compiled) {
    regions.transient = std::max(regions.transient, aligned(part->plan.transient));
  }
  for (const auto& step : steps) {
    regions.feeds = std::max(regions.feeds, step->feed_bytes());
    regions.outputs = std::max(regions.outputs, step->output_bytes());
    batch = std::max(batch, step->options().batch);
  }
  regions.state = std::max(regions.state, variables.bytes());
  check_memory(regions, batch);
  fetch_outputs();  // what is bound may write to the slots, and these may move
  const bool grows = regions != memory_->regions();
  if (grows) grow(regions);
  adopt(std::move(compiled), std::move(steps), std::move(variables), grows);
  filled_.insert(first_values.zeros.begin(), first_values.zeros.end());
}

/// Binds new steps to the memory, and where it has `moved` the others with them.
void Session::adopt(std::vector<std::unique_ptr<Part>> parts,
                    std::vector<std::unique_ptr<PreparedStep>> steps, Variables variables,
                    bool moved) {
  const Variables known = std::exchange(variables_, std::move(variables));
  const size_t known_parts = parts_.size(), known_steps = steps_.size();
  std::ranges::move(parts, std::back_inserter(parts_));
  std::ranges::move(steps, std::back_inserter(steps_));
  or_bind_again([&] { bind(moved ? 0 : known_parts, moved ? 0 : known_steps); },
                [&] {
                  steps_.resize(known_steps);
                  parts_.resize(known_parts);
                  variables_ = known;
                });
  if (variables_.all().size() > known.all().size()) {
    halves_are_stale_ = true;
    initialised_ = false;
  }
  made_ = true;
  for (size_t i = known_steps; i < steps_.size(); ++i) {
    if (steps_[i]->options().mode == Mode::init) fillers_.push_back(steps_[i].get());
  }
  fill_in();
}

/// What the startup graph does not fill. Where that fails the next step does it.
void Session::fill_in() {
  if (random_ != nullptr && !seeded_) {
    memory_->write(random_, &options_.seed, sizeof options_.seed);
    seeded_ = true;
  }
  if (!initialised_ || !halves_are_stale_) return;
  refresh_halves();
  halves_are_stale_ = false;
}

/// What was bound follows the memory, also where that could not grow.
void Session::grow(const Regions& regions) {
  or_bind_again([&] {
    for (const auto& part : parts_) part->executable->unbind();
    memory_ = memory_->grown(regions);
  });
}

/// Changes what steps are bound to, or binds them. Where that fails, what there is once `undo` has
/// undone the rest is bound again; where that fails as well, no step runs any more because of the
/// first failure.
void Session::or_bind_again(const Change& change, const Change& undo) {
  try {
    change();
  } catch (...) {
    const std::exception_ptr why = std::current_exception();
    undo();
    if (binds_again()) throw;
    broken_ = steps_.empty() ? why : with_loss(why, memory_->is_lost());
    std::rethrow_exception(broken_);
  }
}

bool Session::binds_again() {
  if (memory_->is_lost()) return false;
  try {
    bind(0, 0);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

/// The part that runs a slice, of those known or just compiled, to which it may be added.
Part* Session::part_of(const SliceOfBatch& slice, const Options& step, const ir::Program& program,
                       std::vector<std::unique_ptr<Part>>& compiled) {
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

std::byte* Session::address_of(const Variable& variable) const {
  if (memory_->is_lost()) std::rethrow_exception(broken_);
  return memory_->at().state + variable.offset;
}

std::byte* Session::address_of(std::string_view name) const {
  const Variable* variable = variables_.find(name);
  return variable == nullptr ? nullptr : address_of(*variable);
}

void Session::bind(size_t first_part, size_t first_step) {
  held_ = {};  // what is bound may have written to the slots
  placed_ = {};
  reported_ = reported(variables_);
  random_ = address_of(kRandomState);
  weight_ = address_of(kPartWeight);
  for (size_t i = first_part; i < parts_.size(); ++i) {
    parts_[i]->executable->bind(memory_->at(), variables_);
  }
  for (size_t i = first_step; i < steps_.size(); ++i) steps_[i]->bind_outputs(memory_);
}

void Session::initialise() {
  if (!made_) prepare(std::span<const Options>());
  if (!initialised_) {
    for (; !fillers_.empty(); fillers_.pop_back()) {
      run(*fillers_.back(), Batch());
      settle();
      for (const auto& op : fillers_.back()->runs().front().part->program->main().ops) {
        if (is_store(*op)) filled_.insert(op->symbol);
      }
    }
    while (!given_.empty()) {
      const auto& [name, value] = *given_.begin();
      assign(variables_.named(name), value);
      filled_.insert(name);
      given_.erase(given_.begin());
    }
    initialised_ = true;
    halves_are_stale_ = true;
    placed_ = {};
  }
  fill_in();
}

void Session::give(const std::string& name, const Tensor& value) {
  if (!made_) {
    given_.insert_or_assign(name, value);
  } else {
    initialise();
    assign(variables_.named(name), value);
  }
}

void Session::refresh_halves(std::string_view parameter) {
  for (const Variable& copy : variables_.all()) {
    const auto of = copied_parameter(copy.name);
    if (!of || copy.saved() || (!parameter.empty() && *of != parameter)) continue;
    if (const Variable* master = variables_.find(*of)) assign(copy, value(*master));
  }
}

std::vector<Variable> Session::initialised() const {
  std::vector<Variable> filled;
  for (const Variable& v : variables_.all()) {
    if (filled_.contains(v.name) || v.name == kRandomState) filled.push_back(v);
  }
  std::ranges::sort(filled, {}, &Variable::name);
  return filled;
}

std::vector<Variable> Session::recorded_variables() const {
  return fluid::recorded_variables(*recorded_, options_.passes);
}

Profile Session::profile() const {
  Profile profile{.program = recorded_->name,
                  .rank = options_.passes.rank,
                  .threads = memory_->is_host() ? device_->threads() : 0,
                  .warm_up = options_.profile ? options_.profile->warm_up : 0,
                  .steps = {}};
  for (const auto& step : steps_) {
    if (!step->recorder() || step->recorder()->times().empty()) continue;
    ProfiledStep profiled{.mode = step->options().mode, .batch = step->options().batch};
    const auto times = step->recorder()->times();
    profiled.times.assign(times.begin(), times.end());
    for (const PreparedStep::Run& run : step->runs()) {
      std::vector<CallInfo>& calls = profiled.runs.emplace_back();
      for (const ir::Op* op : run.part->executable->calls()) {
        calls.push_back(call_info(*op, run.slice.samples, device_->target()));
      }
    }
    profile.steps.push_back(std::move(profiled));
  }
  return profile;
}

void Session::assign(const Variable& variable, const Tensor& value) {
  const DType dtype = variable.type.dtype;
  const Tensor converted = value.dtype() == dtype ? value : value.cast(dtype);
  const bool were_stale = std::exchange(halves_are_stale_, true);
  write_state(address_of(variable), converted.data(), converted.bytes());
  refresh_halves(variable.name);
  halves_are_stale_ = were_stale;
}

void Session::write_state(std::byte* to, const void* from, int64_t bytes) {
  settle();
  placed_ = {};
  memory_->write(to, from, bytes);
}

void Session::take(const std::map<std::string, std::string>& decisions) {
  settle();
  if (!device_->take(decisions)) return;
  fetch_outputs();
  or_bind_again([&] { bind(0, 0); });
}

void Session::broadcast(const Variable& variable) {
  settle();
  placed_ = {};
  device_->broadcast(address_of(variable), variable.type.bytes_at(1));
}

Tensor Session::value(const Variable& variable) {
  settle();
  std::byte* at = address_of(variable);
  const std::vector<int64_t> shape = extents(variable.type.shape, 1);
  if (memory_->is_host()) return Tensor::view(variable.type.dtype, shape, at);
  Tensor copied(variable.type.dtype, shape);
  memory_->read(copied.data(), at, copied.bytes());
  return copied;
}

}  // namespace fluid
