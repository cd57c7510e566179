#include "executor/session/step_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "executor/device/bytes_text.h"
#include "executor/device/forks.h"
#include "executor/device/out_of_memory.h"
#include "executor/host/build_id.h"
#include "ir/print.h"
#include "ir/stopwatch.h"
#include "ops/program_file.h"
#include "ops/source_kind.h"
#include "passes/pass.h"
#include "passes/precompute_weights.h"
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
                     .declared_dtype = declared->results[0].type.dtype,
                     .type = op->results[0].type,
                     .scale = declared->attrs.get_or("scale", 1.0),
                     .channels = channel_norms_of(*declared),
                     .offset = plan.values.at(op->result()).offset,
                     .loc = declared->loc});
  }
  return feeds;
}

/// If `why` is a DeviceError, returns it with an extended message: no step can run any more.
/// Returns other errors, and a LibraryPreparationError, unchanged. `memory_is_lost`: whether the
/// contents of GPU memory are lost.
std::exception_ptr with_consequence(const std::exception_ptr& why, bool memory_is_lost) {
  try {
    std::rethrow_exception(why);
  } catch (const LibraryPreparationError&) {
    return why;  // the message of a LibraryPreparationError already tells the user to restart
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

bool has_sparse_parameters(const ir::Program& program) {
  return std::ranges::any_of(program.main().ops, [](const auto& op) {
    return source_kind(*op) == SourceKind::parameter && op->attrs.get_or("sparse", false);
  });
}

bool computes_weights(const CompiledProgram& entry) {
  return std::ranges::any_of(entry.options.init_variables, is_precomputed_weight);
}

/// Returns CompiledProgram::values_key of a compiled program.
std::string values_key_of(const CompiledProgram& entry) {
  const std::string fingerprint =
      computes_weights(entry) ? entry.executable->fingerprint() : std::string();
  if (fingerprint.empty()) return "";
  return ObjectCache::hash_digits(fingerprint + '\n' + ir::print(*entry.program));
}

bool is_predict_step(const PreparedStep& step, int64_t batch, int64_t length) {
  const Options& o = step.options();
  return o.mode == Mode::predict && o.batch == batch && o.sequence_length == length;
}

}  // namespace

StepCache::StepCache(std::unique_ptr<ir::Program> recorded, std::unique_ptr<Device> device,
                     const SessionOptions& options)
    : recorded_(std::move(recorded)),
      has_sparse_parameters_(has_sparse_parameters(*recorded_)),
      device_(std::move(device)),
      options_(options),
      memory_(device_->allocate_memory({.feed_slots = options.feed_slots(device_->target())})),
      program_cache_(options.kernel_cache_dir, *device_, build_id()),
      recorded_identity_(program_cache_.identity_of(*recorded_)) {}

bool StepCache::has_equal_global_batch(const Options& options, const Options& wanted) const {
  const bool matters = has_sparse_parameters_ && options.mode == Mode::train;
  return !matters || wanted.global_batch == 0 || options.global_batch == wanted.global_batch;
}

PreparedStep* StepCache::find_among(const Steps& steps, const Options& wanted) const {
  for (const auto& step : steps) {
    const Options& o = step->options();
    if (o.mode == wanted.mode && o.recipe == wanted.recipe && o.batch == wanted.batch &&
        o.sequence_length == wanted.sequence_length && o.feeds == wanted.feeds &&
        o.init_variables == wanted.init_variables && has_equal_global_batch(o, wanted)) {
      return step.get();
    }
  }
  return nullptr;
}

PreparedStep* StepCache::find(const Options& wanted) const { return find_among(steps_, wanted); }

bool StepCache::has_step_for(Mode mode) const {
  return std::ranges::any_of(steps_,
                             [&](const auto& step) { return step->options().mode == mode; });
}

PreparedStep* StepCache::find_predict(const Batch& batch, int64_t length) const {
  PreparedStep* best = nullptr;
  for (const auto& step : steps_) {
    if (!is_predict_step(*step, batch.size, length)) continue;
    const bool enough = std::ranges::all_of(
        step->feeds(), [&](const Feed& feed) { return batch.find(feed.name) != nullptr; });
    if (enough && (best == nullptr || step->num_outputs() > best->num_outputs())) best = step.get();
  }
  return best;
}

PreparedStep* StepCache::find_predict(const Batch& batch, int64_t length,
                                      std::span<const std::string> all_feeds) const {
  const auto is_given = [&](const std::string& feed) { return batch.find(feed) != nullptr; };
  for (const auto& step : steps_) {
    if (!is_predict_step(*step, batch.size, length)) continue;
    const Options& options = step->options();
    const bool fits = options.feeds.empty() ? std::ranges::all_of(all_feeds, is_given)
                                            : options.feeds.size() == batch.columns.size() &&
                                                  std::ranges::all_of(options.feeds, is_given);
    if (fits) return step.get();
  }
  return nullptr;
}

RegionSizes StepCache::required_regions(const MemoryPlan& plan) const {
  const RegionSizes& now = memory_->regions();
  return {.state = std::max(now.state, plan.state),
          .feeds = std::max(now.feeds, align_up(plan.feeds)),
          .outputs = std::max(now.outputs, align_up(plan.outputs)),
          .transient = std::max(now.transient, align_up(plan.transient)),
          .feed_slots = now.feed_slots};
}

void StepCache::check_memory(const RegionSizes& regions, int64_t batch) const {
  const MemoryLimit& limit = options_.memory;
  if (regions.total_bytes() <= limit.bytes) return;
  const std::string why = fmt::format(
      "a step of {} samples needs {}, {}; take a smaller batch, micro-batches or mixed precision",
      batch, bytes_text(static_cast<double>(regions.total_bytes())), limit.text);
  if (limit.set_by_user) throw UserError(why);
  throw OutOfMemory(why);
}

std::unique_ptr<CompiledProgram> StepCache::compile(const Options& options, int64_t batch,
                                                    const Source& source) {
  auto entry = std::make_unique<CompiledProgram>();
  entry->options = options;
  entry->cache_key = program_cache_.key_of(source.identity, options);
  const bool is_cached = read_cached(batch, *entry);
  std::string serialized;
  while (!is_cached && entry->executable == nullptr) {
    const Stopwatch watch;
    entry->program = source.program.clone();
    run_passes(*entry->program,
               options.mode == Mode::init ? startup_pipeline(options) : pipeline(options), options,
               device_->target());
    ++programs_passed_;
    if (!entry->cache_key.empty()) serialized = serialize_program(*entry->program);
    passes_ms_ += watch.ms();
    plan_memory(batch, *entry);
    entry->executable = device_->compile(*entry->program, entry->plan, options);
  }
  if (!is_cached) {
    entry->values_key = values_key_of(*entry);
    program_cache_.store(entry->cache_key, serialized, entry->values_key);
  }
  entry->feeds = feeds_of(*entry->program, entry->plan, *recorded_);
  return entry;
}

/// Reads the program from the cache and compiles it, unless it may_stay_uncompiled(). Returns false
/// if the cache does not have it.
bool StepCache::read_cached(int64_t batch, CompiledProgram& entry) {
  const Stopwatch watch;
  std::optional<CachedProgram> cached = program_cache_.find(entry.cache_key);
  if (!cached) return false;
  ++programs_cached_;
  entry.program = std::move(cached->program);
  entry.values_key = std::move(cached->values_key);
  passes_ms_ += watch.ms();
  plan_memory(batch, entry);
  if (!may_stay_uncompiled(entry))
    entry.executable = device_->compile(*entry.program, entry.plan, entry.options);
  return true;
}

/// Sets the memory plan and the weight program of a program that has been through the passes.
void StepCache::plan_memory(int64_t batch, CompiledProgram& entry) {
  const Stopwatch watch;
  entry.weight_program = extract_weight_program(*entry.program);
  entry.plan = memory_plan(*entry.program, entry.options);
  if (entry.options.guard_plan) verify_plan(entry.plan, *entry.program, entry.options);
  passes_ms_ += watch.ms();
  const RegionSizes regions = required_regions(entry.plan);
  check_memory(regions, batch);
  if (device_->threads() > 1) memory_->prepare_for(regions, maps_weights(entry));
}

/// Finds the compiled program of a micro-batch in `programs_` or `compiled`. If there is none,
/// compiles the program and appends it to `compiled`.
CompiledProgram* StepCache::find_or_compile(const MicroBatch& micro_batch,
                                            const Options& step_options, const Source& source,
                                            Programs& compiled) {
  const Options options = micro_batch.options(step_options);
  for (const auto* list : {&programs_, &compiled}) {
    for (const auto& entry : *list) {
      const Options& o = entry->options;
      if (o.mode == options.mode && o.recipe == options.recipe && o.batch == options.batch &&
          o.sequence_length == options.sequence_length && o.micro_batch == options.micro_batch &&
          o.feeds == options.feeds && o.init_variables == options.init_variables &&
          has_equal_global_batch(o, options)) {
        return entry.get();
      }
    }
  }
  compiled.push_back(compile(options, step_options.batch, source));
  return compiled.back().get();
}

/// Selects the variables that the startup program has to initialise. Skips variables that have a
/// value and variables that an existing startup step initialises.
StartupPlan StepCache::plan_startup(
    const Variables& variables, const Programs& compiled,
    const std::function<bool(const std::string&)>& has_value) const {
  const auto is_filled = [&](const std::string& name) {
    return has_value(name) || std::ranges::any_of(steps_, [&](const auto& step) {
             return step->options().init_variables.contains(name);
           });
  };
  std::set<std::string> wanted;
  for (const Variable& v : variables.all()) {
    if (is_initialised(v) && !is_filled(v.name)) wanted.insert(v.name);
  }
  std::vector<const ir::Program*> programs = {recorded_.get()};
  for (const auto* list : {&programs_, &compiled}) {
    for (const auto& entry : *list) programs.push_back(entry->program.get());
  }
  return plan_startup_values(wanted, variables, programs);
}

std::unique_ptr<PreparedStep> StepCache::compile_step(const Options& options, const Source& source,
                                                      Programs& compiled) {
  std::vector<PreparedStep::Run> runs;
  const int64_t micro_batches = options.mode == Mode::train ? options_.micro_batches : 1;
  for (const MicroBatch& micro_batch : split_into_micro_batches(options.batch, micro_batches)) {
    runs.push_back({micro_batch, find_or_compile(micro_batch, options, source, compiled)});
  }
  auto step = std::make_unique<PreparedStep>(options, std::move(runs), *recorded_);
  if (options_.profile && options.mode != Mode::init) step->enable_profiling(*options_.profile);
  return step;
}

/// Compiles a step that runs the `store` ops of `source` for `variables`. Appends the step to
/// `steps`.
PreparedStep* StepCache::compile_store_step(const Source& source, std::set<std::string> variables,
                                            Programs& compiled, Steps& steps) {
  Options options = options_.passes;
  options.mode = Mode::init;
  options.batch = 1;
  options.init_variables = std::move(variables);
  steps.push_back(compile_step(options, source, compiled));
  return steps.back().get();
}

/// Compiles steps that compute the precomputed weights of the programs in `compiled`. Skips
/// weights that another step computes.
std::vector<WeightStep> StepCache::compile_weight_steps(Programs& compiled, Steps& steps) {
  std::vector<WeightStep> added;
  std::set<std::string> computed;
  for (const auto* list : {&steps_, &steps}) {
    for (const auto& step : *list) {
      const std::set<std::string>& stored = step->options().init_variables;
      computed.insert(stored.begin(), stored.end());
    }
  }
  for (size_t i = 0; i < compiled.size(); ++i) {
    const std::unique_ptr<ir::Program> program = std::move(compiled[i]->weight_program);
    if (program == nullptr) continue;
    ir::Graph& graph = program->main();
    graph.erase_if([&](const ir::Op& op) { return is_store(op) && computed.contains(op.symbol); });
    erase_dead_ops(graph);
    std::set<std::string> stored;
    for (const auto& op : graph.ops) {
      if (is_store(*op)) stored.insert(op->symbol);
    }
    if (stored.empty()) continue;
    computed.insert(stored.begin(), stored.end());
    added.push_back({compile_store_step({*program, "weights of " + compiled[i]->cache_key},
                                        std::move(stored), compiled, steps)});
  }
  return added;
}

/// Whether most of the variables of a program may be mapped from the cache of precomputed weights.
bool StepCache::maps_weights(const CompiledProgram& entry) const {
  if (options_.kernel_cache_dir.empty()) return false;
  if (entry.weight_program != nullptr)
    return stored_bytes(*entry.weight_program) >= kMinMappedWeights;
  return computes_weights(entry);
}

/// Whether the program need not be compiled before the WeightCache was searched for its results.
bool StepCache::may_stay_uncompiled(const CompiledProgram& entry) const {
  return computes_weights(entry) && !entry.values_key.empty() && maps_weights(entry) &&
         stored_bytes(*entry.program) >= kMinMappedWeights;
}

AddedSteps StepCache::add_steps(std::span<const Options> wanted,
                                const std::function<bool(const std::string&)>& has_value,
                                const std::function<void()>& before_binding) {
  require_runnable();
  try {
    return compile_and_bind(wanted, has_value, before_binding);
  } catch (...) {
    memory_->prepare_for({}, false);
    throw;
  }
}

AddedSteps StepCache::compile_and_bind(std::span<const Options> wanted,
                                       const std::function<bool(const std::string&)>& has_value,
                                       const std::function<void()>& before_binding) {
  Programs compiled;
  Steps steps;
  // Compile and check the memory limit first, so that an error leaves the cache unchanged.
  for (const Options& options : wanted) {
    if (find(options) != nullptr || find_among(steps, options) != nullptr) continue;
    steps.push_back(compile_step(options, {*recorded_, recorded_identity_}, compiled));
  }
  AddedSteps added{.weight_steps = compile_weight_steps(compiled, steps)};
  Variables variables = variables_;
  for (WeightStep& weights : added.weight_steps) {
    weights.range = add_weight_variables(*weights.step->runs().front().compiled->program,
                                         *recorded_, options_.passes.rank, variables);
  }
  const auto add_from = [&](size_t first) {
    for (size_t i = first; i < compiled.size(); ++i) {
      add_variables(*compiled[i]->program, *recorded_, options_.passes.rank, variables);
    }
  };
  add_from(0);
  for (const Variable& v : recorded_variables()) variables.add(v.name, v.type, v.kind);
  StartupPlan first_values = plan_startup(variables, compiled, has_value);
  if (!first_values.computed.empty()) {
    const size_t known = compiled.size();
    const auto program = startup_program(recorded_->name, first_values.computed);
    added.startup_steps.push_back(
        compile_store_step({*program, program_cache_.identity_of(*program)},
                           first_values.computed_names(), compiled, steps));
    add_from(known);
  }
  const RegionSizes regions = required_regions(compiled, steps, variables);
  int64_t batch = 0;
  for (const auto& step : steps) batch = std::max(batch, step->options().batch);
  check_memory(regions, batch);
  before_binding();  // binding may overwrite the slots, and growing the arena may move them
  const bool grows = regions != memory_->regions();
  if (grows) grow_memory(regions);
  added.has_new_variables = variables.all().size() > variables_.all().size();
  added.zero_initialised = std::move(first_values.zeros);
  add_and_bind(std::move(compiled), std::move(steps), std::move(variables), grows);
  return added;
}

RegionSizes StepCache::required_regions(const Programs& programs, const Steps& steps,
                                        const Variables& variables) const {
  RegionSizes regions = memory_->regions();
  for (const auto& entry : programs) {
    regions.transient = std::max(regions.transient, align_up(entry->plan.transient));
  }
  for (const auto& step : steps) {
    regions.feeds = std::max(regions.feeds, step->feed_bytes());
    regions.outputs = std::max(regions.outputs, step->output_bytes());
  }
  regions.state = std::max(regions.state, variables.bytes());
  return regions;
}

/// Adds and binds the new steps. `memory_moved`: whether the memory has new addresses, so that all
/// steps must be bound again.
void StepCache::add_and_bind(Programs programs, Steps steps, Variables variables,
                             bool memory_moved) {
  const Variables known = std::exchange(variables_, std::move(variables));
  const size_t known_programs = programs_.size(), known_steps = steps_.size();
  std::ranges::move(programs, std::back_inserter(programs_));
  std::ranges::move(steps, std::back_inserter(steps_));
  run_or_rebind([&] { bind(memory_moved ? 0 : known_programs, memory_moved ? 0 : known_steps); },
                [&] {
                  steps_.resize(known_steps);
                  programs_.resize(known_programs);
                  variables_ = known;
                });
}

/// Replaces the memory by a larger one. If the replacement fails, rebinds the steps to the old
/// memory.
void StepCache::grow_memory(const RegionSizes& regions) {
  run_or_rebind([&] {
    for (const auto& entry : programs_) {
      if (entry->executable != nullptr) entry->executable->unbind();
    }
    memory_ = memory_->reallocate(regions);
  });
}

/// Runs `change`, which rebinds steps or replaces their memory. If `change` fails, runs `undo`,
/// rebinds all cached steps to the restored memory and rethrows. If rebinding fails too, no step
/// can run any more.
void StepCache::run_or_rebind(const Change& change, const Change& undo) {
  try {
    change();
  } catch (...) {
    const std::exception_ptr why = std::current_exception();
    undo();
    if (try_rebind_steps()) throw;
    fail_permanently(steps_.empty() ? why : with_consequence(why, memory_->is_lost()));
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

void StepCache::bind(size_t first_program, size_t first_step) {
  ++num_bindings_;
  for (size_t i = first_program; i < programs_.size(); ++i) {
    if (programs_[i]->executable != nullptr)
      programs_[i]->executable->bind(memory_->addresses(), variables_);
  }
  for (size_t i = first_step; i < steps_.size(); ++i) steps_[i]->bind_outputs(memory_);
  for (const auto& step : steps_) step->find_reported_variables(variables_);
}

void StepCache::require_executable(const PreparedStep& step,
                                   const std::function<void()>& before_binding) {
  for (const PreparedStep::Run& run : step.runs()) {
    CompiledProgram& entry = *run.compiled;
    if (entry.executable != nullptr) continue;
    auto executable = device_->compile(*entry.program, entry.plan, entry.options);
    before_binding();
    executable->bind(memory_->addresses(), variables_);
    entry.executable = std::move(executable);
    ++num_bindings_;
  }
}

void StepCache::report_passes(CompileReport& report) const {
  report.programs = programs_passed_;
  report.cached_programs = programs_cached_;
  report.passes_ms = passes_ms_;
}

void StepCache::rebind_steps() {
  run_or_rebind([&] { bind(0, 0); });
}

void StepCache::require_runnable() const {
  check_not_forked();
  if (failure_) std::rethrow_exception(failure_);
}

void StepCache::fail_permanently(const std::exception_ptr& why) {
  failure_ = why;
  std::rethrow_exception(failure_);
}

std::vector<Variable> StepCache::recorded_variables() const {
  return fluid::recorded_variables(*recorded_, options_.passes);
}

std::byte* StepCache::address_of(const Variable& variable) const {
  if (memory_->is_lost()) require_runnable();
  return memory_->addresses().state + variable.offset;
}

std::byte* StepCache::address_of(std::string_view name) const {
  const Variable* variable = variables_.find(name);
  return variable == nullptr ? nullptr : address_of(*variable);
}

}  // namespace fluid
