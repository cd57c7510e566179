#include "executor/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <span>

#include "executor/checkpoint/merged_adapters.h"
#include "executor/checkpoint/merged_weight.h"
#include "executor/checkpoint/parameter_file.h"
#include "executor/checkpoint/result_options.h"
#include "executor/comm/process_group.h"
#include "executor/debug/nonfinite.h"
#include "executor/debug/nonfinite_search.h"
#include "executor/options/option_checks.h"
#include "executor/places/device_of.h"
#include "executor/session/batch_length.h"
#include "executor/session/feeds.h"
#include "executor/session/parameter_averages.h"
#include "executor/session/rank_sync.h"
#include "executor/session/session.h"
#include "executor/session/session_options.h"
#include "frontend/files/safetensors.h"
#include "frontend/lora.h"
#include "frontend/parameter_groups.h"
#include "ir/print.h"
#include "ops/optim/plateau.h"
#include "ops/optim/recipes.h"
#include "ops/source_kind.h"
#include "passes/inference.h"
#include "passes/loss_scale.h"
#include "passes/recipe.h"
#include "passes/rewrite.h"
#include "passes/set_length.h"

namespace fluid {
namespace {

std::vector<std::string> feed_names(const ir::Program& program) {
  std::vector<std::string> names;
  for (const auto& op : program.main().ops) {
    if (source_kind(*op) == SourceKind::feed) names.push_back(op->symbol);
  }
  return names;
}

Program with_length(const Program& program, int64_t length) {
  auto concrete = program.ir().clone();
  set_sequence_length(*concrete, BatchLength(*concrete).checked(length));
  return Program(std::move(concrete));
}

/// Collective. If PrecisionOptions::choose_amp is true, returns the precision to use: chosen_amp if
/// set, else the result of choose_amp() on rank 0. All ranks return rank 0's choice. Returns
/// nullopt if PrecisionOptions::choose_amp is false.
std::optional<AmpChoice> chosen_amp(const Program& program, Place place, ExecutorOptions options,
                                    ProcessGroup& group) {
  group.check_equal("choice of precision", options.precision.choose_amp ? "measured" : "given");
  group.check_equal("choice of kernels", options.cpu.tune ? "measured" : "predicted");
  if (!options.precision.choose_amp) return std::nullopt;
  if (!options.precision.amp) options.precision.amp = AmpOptions();
  check_amp(options);
  AmpChoice choice;
  if (options.precision.chosen_amp) {
    choice.precision = *options.precision.chosen_amp;
  } else if (options.distributed.world.rank == 0) {
    if (options.batch < 1) throw UserError("choose_amp times training steps: it needs a batch");
    choice = choose_amp(with_length(program, options.length), place, options);
  }
  group.barrier();
  if (!group.is_single_process()) group.communicator()->broadcast(&choice, sizeof choice, 0);
  return choice;
}

ExecutorOptions with_chosen_amp(ExecutorOptions options, const std::optional<AmpChoice>& choice) {
  if (choice) options.precision.amp = amp_options_of(*choice, options.precision.amp);
  return options;
}

/// Collective. Adds the tuning records of all ranks to the options: only rank 0 reads checkpoints.
ExecutorOptions with_shared_tuning_record(ExecutorOptions options, const ProcessGroup& group) {
  options.tuning_record = merge_tuning_records(group, options.tuning_record);
  return options;
}

/// Returns `program`. If ExecutorOptions::settable_lr is on, adds the schedule Manual to the
/// recipes without a learning rate schedule.
std::unique_ptr<ir::Program> with_settable_lr(std::unique_ptr<ir::Program> program,
                                              const ExecutorOptions& options) {
  for (ir::Op* train : recipes_of(program->main())) {
    if (options.settable_lr && !train->attrs.has("schedule")) {
      train->attrs.set("schedule", std::string(kManualSchedule));
    }
  }
  return program;
}

ExecutorOptions check_single_process(ExecutorOptions options) {
  if (options.distributed.world.size > 1 || options.distributed.force_collectives ||
      options.precision.choose_amp) {
    throw UserError("several processes and choose_amp need a place that Fluid knows by name");
  }
  return options;
}

ExecutorOptions checked(ExecutorOptions options) {
  check_options(options);
  return options;
}

std::string_view name_of(Mode mode) {
  return mode == Mode::train ? "run" : mode == Mode::eval ? "eval" : "predict";
}

void check_value(const std::string& name, const Type& type, const Tensor& value,
                 const std::string& where) {
  if (!fits_variable(type, value)) {
    throw UserError(where + "'" + name + "' is given as " + value.str() +
                    ", but the parameter is " + type.str());
  }
  check_no_overflow(value, type.dtype, where + "'" + name + "'");
}

}  // namespace

class Executor::Impl {
 public:
  /// Runs the program on `device`. If `device` is null, opens the device of `place`.
  Impl(const Program& program, Place place, ExecutorOptions options,
       std::unique_ptr<Device> device = nullptr)
      : place_(place),
        group_(place, options),
        amp_choice_(chosen_amp(program, place, options, group_)),
        options_(
            with_shared_tuning_record(with_chosen_amp(std::move(options), amp_choice_), group_)),
        recipe_count_(recipes_of(program.ir().main()).size()),
        recipes_(trainable_recipes(program.ir().main())),
        known_feeds_(feed_names(program.ir())),
        batch_length_(program.ir()),
        session_(with_settable_lr(program.ir().clone(), options_),
                 device ? std::move(device) : device_of(place, options_, group_.communicator()),
                 session_options(options_, place)) {
    if (program.ir().main().outputs.empty()) {
      throw UserError("program '" + program.ir().name + "' has no output: mark one with output()");
    }
    check_options(options_);
    check_recipes(program.ir().main());
    for (const std::string& recipe : recipes_) {
      plateau_.push_back(plateau_rule(recipe_named(program.ir().main(), recipe).attrs));
    }
    if (options_.batch > 0) {
      prepare_step(Mode::train, options_.batch, batch_length_.checked(options_.length), {});
    }
  }

  void prepare(const BatchSizes& sizes) {
    std::vector<Options> steps;
    const auto add = [&](Mode mode, const std::vector<int64_t>& batches,
                         const std::set<std::string>& feeds) {
      for (const int64_t batch : batches) {
        for (const int64_t length : checked_lengths(sizes.lengths))
          std::ranges::move(checked_pass_options(mode, batch, length, feeds),
                            std::back_inserter(steps));
      }
    };
    add(Mode::train, sizes.train, {});
    add(Mode::eval, sizes.eval, {});
    add(Mode::predict, sizes.predict, checked_feeds(sizes.predict_feeds));
    if (steps.empty()) return;
    session_.prepare(steps);
    session_.initialise();
    tuning_sync_.propose_choices(group_, session_);
  }

  OutputViews run(Mode mode, const Batch& batch, std::string_view recipe = {}) {
    const std::string& recipe_to_run = mode == Mode::train ? checked_recipe(recipe) : no_recipe();
    if (mode == Mode::train) averages_.require_not_in_use("run()");
    const bool collective = mode == Mode::train && !group_.is_single_process();
    if (collective && options_.distributed.world.size > 1 &&
        (batch.global_batch_size < batch.size || batch.global_batch_size == 0)) {
      throw UserError(fmt::format(
          "run() got a batch of {} samples without the size of the global batch: set "
          "Batch::first and Batch::global_batch_size, as a Reader with rank and world does",
          batch.size));
    }
    const int64_t length = batch_length_.of(batch);
    PreparedStep* step = find(mode, recipe_to_run, batch, length);
    if (step == nullptr) {
      const auto feeds = mode == Mode::predict ? feeds_in(batch) : no_feeds();
      const auto find = [&](int64_t global_batch) {
        return session_.find(effective_mode(mode), recipe_to_run, batch.size, length, feeds,
                             global_batch);
      };
      const bool differs_in_global_batch = mode == Mode::train && find(0) != nullptr;
      if (options_.strict_shapes && !differs_in_global_batch) {
        throw UserError(unprepared_message(mode, batch, length));
      }
      prepare_step(mode, batch.size, length, feeds, batch.global_size());
      step = find(batch.global_size());
    }
    check_feeds(batch, step->feeds(), known_feeds_);
    session_.initialise();  // retries if initialise() failed in prepare()
    if (collective && !group_.started()) start_group_and_broadcast();
    if (collective && batch_length_.is_used()) {
      group_.check_equal("length of the step", std::to_string(length));
    }
    if (collective && recipes_.size() > 1) {
      group_.check_equal("recipe of the step", recipe_to_run);
    }
    if (collective) session_.in_flight().wait_for_inference();
    if (options_.debug.check_finite && step->options().mode == Mode::train)
      search_.save_control_variables();
    if (mode == Mode::train) last_recipe_ = recipe_to_run;
    return session_.run(*step, batch);
  }

  Batch batch_of(Feeds feeds) const {
    Batch batch{.size = 1, .columns = feeds};
    for (const auto& op : session_.recorded_program().main().ops) {
      if (source_kind(*op) != SourceKind::feed) continue;
      const Shape& shape = op->results.at(0).type.shape;
      const Tensor* given = batch.find(op->symbol);
      if (given == nullptr || shape.empty() || shape[0] != kBatch || given->shape().empty())
        continue;
      batch.size = given->shape()[0];
      break;
    }
    return batch;
  }

  std::string first_nonfinite(const Batch& batch) {
    averages_.require_not_in_use("first_nonfinite()");
    if (!options_.debug.check_finite) {
      throw UserError("first_nonfinite() needs the option check_finite");
    }
    const int64_t length = batch_length_.of(batch);
    PreparedStep* step = find(Mode::train, last_recipe_, batch, length);
    if (step == nullptr) {
      throw UserError(
          fmt::format("first_nonfinite() got a batch of {} samples{}, but no step of this size was "
                      "prepared: pass the batch of the last step",
                      batch.size, length_text(length)));
    }
    check_feeds(batch, step->feeds(), known_feeds_);
    return group_.broadcast_first_nonempty(search_.describe_first_nonfinite(*step, batch));
  }

  std::vector<std::string> omitted_outputs(const std::vector<std::string>& feeds) {
    return fluid::omitted_outputs(session_.recorded_program(),
                                  pass_options(Mode::predict, 1, 1, checked_feeds(feeds)));
  }

  /// Returns the options that can change any bit of the results: option name -> value as text.
  std::map<std::string, std::string> result_options() const {
    return fluid::result_options(session_.recorded_program(), options_, place_,
                                 session_.device().threads());
  }

  Place place() const { return place_; }
  const std::optional<AmpOptions>& amp() const { return options_.precision.amp; }
  const std::optional<AmpChoice>& amp_choice() const { return amp_choice_; }

  ProcessGroup& group() { return group_; }

  void broadcast(VariableSet variables) {
    if (variables == VariableSet::all) averages_.require_not_in_use("broadcast()");
    if (group_.is_single_process()) return;
    if (variables == VariableSet::buffers) {
      group_.ensure_startup_barrier();
      broadcast_variables(session_, buffers());
    } else if (group_.started()) {
      broadcast_initialised_variables();
    } else {
      start_group_and_broadcast();
    }
  }

  std::string restore(Snapshot from, const std::string& where) {
    averages_.require_not_in_use("restore()");
    if (trains() && !session().steps().has_step_for(Mode::train)) {
      throw UserError(where + ": prepare() a training step before restore()");
    }
    if (group_.is_single_process()) return restore_local(from, where);
    // restore_local() frees the values of `from`. With ZeRO-1, scatter_sharded_variables() reads
    // the values afterwards, so a copy is necessary.
    const Snapshot whole = options_.distributed.zero > 0 ? from : Snapshot();
    std::string changed;
    group_.run_on_rank_0([&] { changed = restore_local(from, where); });
    broadcast(VariableSet::all);
    std::function<Tensor(const std::string&)> value;
    if (options_.distributed.world.rank == 0) {
      value = [&](const std::string& name) { return whole.find(name)->value; };
    }
    scatter_sharded_variables(session(), group_, value);
    return changed;
  }

  Snapshot snapshot() {
    averages_.require_not_in_use("snapshot()");
    if (!group_.is_single_process()) tuning_sync_.poll_choices(group_, session_);
    Snapshot snapshot = take_snapshot(
        session(), result_options(),
        [&](const Variable& v) { return gather_variable(session_, group_, v); }, unused_variables_);
    snapshot.metadata = {.column_table = column_table_,
                         .merged_adapters = merged_adapters_.ids(),
                         .adapter_origins = merged_adapters_.origins(),
                         .lora = lora_metadata()};
    return snapshot;
  }

  void set_column_table(ColumnTablePtr table) { column_table_ = std::move(table); }
  const ColumnTablePtr& column_table() const { return column_table_; }
  MergedAdapters& merged_adapters() { return merged_adapters_; }
  /// Remembers the present values of an adapter, which may be trained on. Returns the ids of these
  /// values and of what they were trained on from.
  std::set<std::string> add_origin(const LoraAdapter& adapter) {
    return merged_adapters_.add_origin(
        adapter.weight, adapter_id(value_of(adapter.a), value_of(adapter.b), adapter.scale));
  }
  /// Whether a file of adapters holds the variable: because of the program, or because the
  /// checkpoint that was restored lists it.
  bool is_saved_with_lora(const ir::Op& variable) const {
    return fluid::is_saved_with_lora(variable) || saved_with_lora_.contains(variable.symbol);
  }
  std::map<std::string, std::string> lora_metadata() const {
    return fluid::lora_metadata(recorded_program(),
                                [&](const ir::Op& op) { return is_saved_with_lora(op); });
  }

  bool checks_finite() const { return options_.debug.check_finite; }
  bool scales_loss() const {
    return trains() && options_.precision.amp && options_.precision.amp->scales_loss();
  }
  std::vector<Variable> recorded_variables() const { return session_.steps().recorded_variables(); }
  const ir::Program& recorded_program() const { return session_.recorded_program(); }
  /// Returns the value of a variable; not a copy.
  Tensor value_of(std::string_view name) {
    return session().values().value(session().variables().at(name));
  }
  void set_value(const std::string& name, const Tensor& value) {
    session_.values().set_value(name, value);
  }

  bool trains() const { return !recipes_.empty(); }
  /// Returns the recipe called `name`, or the only recipe if `name` is empty. Returns null if
  /// `name` is empty and the program has no recipe.
  const ir::Op* recipe(std::string_view name) const {
    return trains() || !name.empty() ? &recipe_named(recorded_program().main(), name) : nullptr;
  }
  const Variable& recipe_variable(std::string_view recipe_name, std::string_view state) {
    const std::string& checked = checked_recipe(recipe_name);
    return session().variables().at(recipe_state(checked, state));
  }
  bool has_schedule(std::string_view recipe_name) const {
    const ir::Op* train = recipe(recipe_name);
    return train != nullptr && train->attrs.has("schedule");
  }
  /// Returns the base learning rate of the optimizer, as recorded in the program.
  /// set_learning_rate() stores the new rate as a multiple of this rate. Throws UserError unless
  /// the schedule is Manual and a training step is prepared.
  double manual_base_lr(std::string_view recipe_name) {
    const ir::Op* train = recipe(recipe_name);
    if (train == nullptr || train->attrs.get_or("schedule", std::string()) != kManualSchedule) {
      throw UserError(
          "set_learning_rate() needs ExecutorOptions::settable_lr, or schedule Manual in the "
          "recipe");
    }
    if (!session().steps().has_step_for(Mode::train)) {
      throw UserError("set_learning_rate(): prepare() a training step before");
    }
    return train->attrs.get<double>("lr");
  }
  const std::optional<PlateauRule>& plateau(std::string_view recipe_name) const {
    static const std::optional<PlateauRule> none;
    if (!trains() && recipe_name.empty()) return none;
    const std::string& checked = checked_recipe(recipe_name);
    return plateau_[static_cast<size_t>(std::ranges::find(recipes_, checked) - recipes_.begin())];
  }

  /// Calls `change` with a copy of the recipe's variable kPlateau, and assigns the changed copy to
  /// the variable.
  void change_plateau(std::string_view recipe_name,
                      const std::function<void(std::span<double>)>& change) {
    const Variable& variable = recipe_variable(recipe_name, kPlateau);
    Tensor state = session().values().value(variable).copy();
    change(state.as<double>());
    session().values().assign(variable, state);
  }

  Session& session() {
    session_.initialise();
    return session_;
  }

  ParameterAverages& averages() { return averages_; }

  const PreparedStep& prepared(Mode mode, std::string_view recipe, int64_t batch, int64_t length) {
    prepare_step(mode, batch, batch_length_.checked(length), {});
    return *session_.find(effective_mode(mode),
                          mode == Mode::train ? checked_recipe(recipe) : no_recipe(), batch,
                          batch_length_.checked(length), {});
  }

  std::vector<int64_t> lengths_of(const Batch& batch) const {
    if (!batch_length_.is_used()) return {};
    return {batch_length_.of(batch)};
  }

 private:
  static std::set<std::string> no_feeds() { return {}; }
  static const std::string& no_recipe() {
    static const std::string none;
    return none;
  }

  /// Returns the recipe to run: `name`, or the only recipe of the program if `name` is empty.
  /// Returns "" if `name` is empty and the program has no recipe. Throws UserError if the program
  /// has no recipe called `name`, if `name` is empty and there are several recipes, or if the
  /// recipe trains no parameter.
  const std::string& checked_recipe(std::string_view name) const {
    // Steps take the first two branches, which allocate nothing.
    if (name.empty() && recipe_count_ <= 1 && !recipes_.empty()) return recipes_.front();
    const auto found = std::ranges::find(recipes_, name);
    if (found != recipes_.end() && !name.empty()) return *found;
    const ir::Op* train = recipe(name);
    if (train == nullptr) return no_recipe();
    throw_nothing_to_train(*train);
  }

  std::string restore_local(Snapshot& from, const std::string& where) {
    unused_variables_ = restore_snapshot(session(), from, where);
    if (from.metadata.column_table != nullptr) column_table_ = from.metadata.column_table;
    merged_adapters_.restore(from.metadata.merged_adapters, from.metadata.adapter_origins);
    const std::vector<std::string> saved = variables_in_lora_metadata(from.metadata.lora);
    saved_with_lora_ = {saved.begin(), saved.end()};
    for (const LoraAdapter& adapter : lora_adapters(recorded_program())) add_origin(adapter);
    clamp_loss_scale();
    const std::map<std::string, std::string> options = result_options();
    for (const std::string& recipe : recipes_) {
      if (!plateau(recipe) || !monitors_other_metric(from.options, options, recipe)) continue;
      change_plateau(recipe, PlateauRule::reset_metric);
    }
    return changed_result_options(from.options, options);
  }

  /// Fits the restored loss scaling state to the current LossScale options. Clamps a dynamic scale
  /// to [floor, ceiling], sets a fixed scale to `initial`, and limits the counter
  /// loss_scale.good_steps to interval - 1.
  void clamp_loss_scale() {
    if (!scales_loss()) return;
    const LossScale& s = options_.precision.amp->loss_scale;
    for (const std::string& name : recipes_) {
      const Variable& scale_variable = recipe_variable(name, kLossScale);
      const Variable& good_variable = recipe_variable(name, kGoodSteps);
      Tensor scale = session_.values().value(scale_variable).copy();
      Tensor good = session_.values().value(good_variable).copy();
      const double bound =
          s.dynamic ? std::clamp<double>(scale.item(), s.floor, s.ceiling) : s.initial;
      scale.as<float>()[0] = static_cast<float>(bound);
      good.as<int64_t>()[0] = std::min(good.as<int64_t>()[0], s.interval - 1);
      session_.values().assign(scale_variable, scale);
      session_.values().assign(good_variable, good);
    }
  }

  std::vector<Variable> buffers() const {
    std::vector<Variable> written;
    for (const auto& op : session_.recorded_program().main().ops) {
      const bool cached = is_store(*op) &&
                          is_cache(*variable_named(session_.recorded_program().main(), op->symbol));
      if (is_store(*op) && !cached) written.push_back(session_.variables().at(op->symbol));
    }
    return written;
  }

  void start_group_and_broadcast() {
    if (options_.distributed.zero > 0 && !session_.steps().has_step_for(Mode::train)) {
      throw UserError("prepare() a training step before broadcast(): its state is shared");
    }
    group_.startup_barrier();
    group_.check_equal("program", ir::print(session_.recorded_program()));
    group_.check_equal("set of options", options_equal_on_all_ranks());
    tuning_sync_.merge_choices(group_, session_);
    broadcast_initialised_variables();
  }

  void broadcast_initialised_variables() {
    session_.initialise();
    broadcast_variables(session_, session_.values().initialised_variables());
  }

  /// Returns the options that must be equal on all ranks: option name -> value as text.
  std::map<std::string, std::string> options_equal_on_all_ranks() const {
    std::map<std::string, std::string> equal = result_options();
    for (const char* may_differ : {"seed", "threads", "tuning"}) equal.erase(may_differ);
    equal["first bucket"] = std::to_string(options_.distributed.buckets.first_bytes);
    equal["bucket"] = std::to_string(options_.distributed.buckets.bytes);
    equal["check-finite"] = options_.debug.check_finite ? "on" : "off";
    equal["zero"] = std::to_string(options_.distributed.zero);
    return equal;
  }

  /// Returns the sequence lengths (values of kLength) to prepare steps for: `given`, or {1} if no
  /// shape of the program contains kLength. Throws UserError if a length is missing, not positive
  /// or superfluous.
  std::vector<int64_t> checked_lengths(const std::vector<int64_t>& given) const {
    if (given.empty()) return {batch_length_.checked(0)};
    std::vector<int64_t> lengths;
    for (const int64_t length : given) lengths.push_back(batch_length_.checked(length));
    return lengths;
  }

  /// Returns the pass options of the steps for `mode`, `batch` samples, `length` and `feeds`. In
  /// Mode::train, there is a step for each recipe, so that the variables of all recipes exist
  /// before the first checkpoint. Throws UserError if the batch size is invalid.
  std::vector<Options> checked_pass_options(Mode mode, int64_t batch, int64_t length,
                                            const std::set<std::string>& feeds,
                                            int64_t global_batch = 0) const {
    const bool none_is_fine = !group_.is_single_process() && mode == Mode::train;
    if (batch < 0 || (batch == 0 && !none_is_fine)) {
      throw UserError("cannot prepare a batch of " + std::to_string(batch) + " samples");
    }
    std::vector<Options> steps = {
        pass_options(effective_mode(mode), batch, length, feeds, global_batch)};
    if (steps.front().mode != Mode::train) return steps;
    steps.resize(recipes_.size(), steps.front());
    for (size_t i = 0; i < steps.size(); ++i) steps[i].recipe = recipes_[i];
    return steps;
  }

  void prepare_step(Mode mode, int64_t batch, int64_t length, const std::set<std::string>& feeds,
                    int64_t global_batch = 0) {
    session_.prepare(checked_pass_options(mode, batch, length, feeds, global_batch));
    session_.initialise();
    tuning_sync_.propose_choices(group_, session_);
  }

  /// Returns Mode::eval for Mode::train if the program has no minimize(), because run() then equals
  /// eval(). Returns other modes unchanged.
  Mode effective_mode(Mode mode) const {
    return mode == Mode::train && !trains() ? Mode::eval : mode;
  }

  Options pass_options(Mode mode, int64_t batch, int64_t length, const std::set<std::string>& feeds,
                       int64_t global_batch = 0) const {
    Options o = session_options(options_).passes;
    o.mode = mode;
    o.batch = batch;
    o.global_batch = global_batch > 0 ? global_batch : batch * o.world;
    o.sequence_length = length;
    o.feeds = feeds;
    return o;
  }

  std::set<std::string> checked_feeds(const std::vector<std::string>& names) const {
    for (const std::string& name : names) {
      if (std::ranges::find(known_feeds_, name) == known_feeds_.end()) {
        throw UserError("the program has no feed '" + name + "'" +
                        did_you_mean(name, known_feeds_));
      }
    }
    std::set<std::string> feeds(names.begin(), names.end());
    if (feeds.size() == known_feeds_.size()) feeds.clear();
    return feeds;
  }

  std::set<std::string> feeds_in(const Batch& batch) const {
    std::vector<std::string> names;
    for (const auto& [name, column] : batch.columns) names.push_back(name);
    return checked_feeds(names);
  }

  /// Returns the prepared step for `batch` with sequences of `length` elements, or null. Does not
  /// allocate. Without strict_shapes, a predict step computes all outputs that the feeds in `batch`
  /// allow. With strict_shapes, the step may compute fewer outputs.
  PreparedStep* find(Mode mode, const std::string& recipe, const Batch& batch, int64_t length) {
    static const std::set<std::string> kAll;
    mode = effective_mode(mode);
    if (mode != Mode::predict) {
      return session_.find(mode, recipe, batch.size, length, kAll, batch.global_size());
    }
    return options_.strict_shapes ? session_.steps().find_predict(batch, length)
                                  : session_.steps().find_predict(batch, length, known_feeds_);
  }

  /// Returns " of length <length>" for error messages; "" for a program without kLength.
  std::string length_text(int64_t length) const {
    return batch_length_.is_used() ? fmt::format(" of length {}", length) : "";
  }

  std::string unprepared_message(Mode mode, const Batch& batch, int64_t length) const {
    const std::string_view verb = mode == Mode::train ? "train" : name_of(mode);
    return fmt::format(
        "{}() got a batch of {} samples{}, which was not prepared: call prepare({{.{} = {{{}}}{}}})"
        " first, or do not set strict_shapes",
        name_of(mode), batch.size, length_text(length), verb, batch.size,
        batch_length_.is_used() ? fmt::format(", .lengths = {{{}}}", length) : "");
  }

  Place place_;  ///< place of the device; cpu() if the caller implements the device
  ProcessGroup group_;
  std::optional<AmpChoice> amp_choice_;
  ExecutorOptions options_;
  size_t recipe_count_;                              ///< including those that train nothing
  std::vector<std::string> recipes_;                 ///< result of trainable_recipes()
  std::vector<std::optional<PlateauRule>> plateau_;  ///< one element per recipe
  std::string last_recipe_;                          ///< recipe of the last training step
  std::vector<std::string> known_feeds_;
  ColumnTablePtr column_table_;  ///< column table of the training data; may be null
  MergedAdapters merged_adapters_;
  std::set<std::string> saved_with_lora_;  ///< variables that the restored checkpoint lists
  std::vector<SnapshotVariable> unused_variables_;  ///< result of restore_snapshot()
  BatchLength batch_length_;
  TuningSync tuning_sync_;
  Session session_;
  NonfiniteSearch search_{session_};
  ParameterAverages averages_{session_};
};

Executor::Executor(const Program& program, Place place, ExecutorOptions options)
    : impl_(std::make_unique<Impl>(program, place, checked(std::move(options)))) {}

Executor::Executor(const Program& program, std::unique_ptr<Device> device, ExecutorOptions options)
    : impl_(std::make_unique<Impl>(program, cpu(), check_single_process(std::move(options)),
                                   std::move(device))) {}
Executor::~Executor() = default;
Executor::Executor(Executor&&) noexcept = default;

void Executor::prepare(const BatchSizes& sizes) { impl_->prepare(sizes); }
std::vector<int64_t> Executor::lengths_of(const Batch& batch) const {
  return impl_->lengths_of(batch);
}
void Executor::broadcast(VariableSet variables) { impl_->broadcast(variables); }
ProcessGroup& Executor::process_group() { return impl_->group(); }
OutputViews Executor::run(const Batch& batch) { return impl_->run(Mode::train, batch); }
OutputViews Executor::run(std::string_view recipe, const Batch& batch) {
  return impl_->run(Mode::train, batch, recipe);
}
OutputViews Executor::eval(const Batch& batch) { return impl_->run(Mode::eval, batch); }
OutputViews Executor::predict(const Batch& batch) { return impl_->run(Mode::predict, batch); }
OutputViews Executor::run(Feeds feeds) { return run(impl_->batch_of(feeds)); }
OutputViews Executor::run(std::string_view recipe, Feeds feeds) {
  return run(recipe, impl_->batch_of(feeds));
}
OutputViews Executor::eval(Feeds feeds) { return eval(impl_->batch_of(feeds)); }
OutputViews Executor::predict(Feeds feeds) { return predict(impl_->batch_of(feeds)); }

std::string Executor::first_nonfinite(const Batch& batch) { return impl_->first_nonfinite(batch); }

std::vector<std::string> Executor::omitted_outputs(const std::vector<std::string>& feeds) {
  return impl_->omitted_outputs(feeds);
}

void Executor::save(const std::string& path, const SaveOptions& options) {
  const auto use = impl_.lock();
  Session& session = impl_->session();
  const std::vector<LoraAdapter> adapters = lora_adapters(impl_->recorded_program());
  const bool adapters_only = !adapters.empty() && !options.merge_adapters;
  if (!adapters_only) require_exact_merge(impl_->recorded_program());
  std::map<std::string, Tensor> tensors;
  for (const auto& [name, op] : variables_by_name(impl_->recorded_program().main())) {
    const Variable* v = session.variables().find(name);
    const bool left_out = adapters_only ? !impl_->is_saved_with_lora(*op) : is_lora_adapter(*op);
    if (v == nullptr || !v->is_recorded() || left_out) continue;
    tensors.emplace(v->name, impl_->value_of(v->name));
  }
  ParameterMetadata metadata{.column_table = impl_->column_table()};
  if (adapters_only) {
    metadata.lora = impl_->lora_metadata();
    metadata.adapter_origins = impl_->merged_adapters().origins();
  } else {
    metadata.merged_adapters = impl_->merged_adapters().ids();
    for (const LoraAdapter& adapter : adapters) {
      Tensor& weight = tensors.at(adapter.weight);
      const Tensor a = impl_->value_of(adapter.a), b = impl_->value_of(adapter.b);
      weight = merged_weight(weight, a, b, adapter.scale);
      metadata.merged_adapters.merge(impl_->add_origin(adapter));
    }
  }
  write_safetensors(path, {tensors.begin(), tensors.end()}, metadata.entries());
}

std::vector<std::string> Executor::nonfinite_parameters() {
  const auto use = impl_.lock();
  Session& session = impl_->session();
  std::vector<std::string> names;
  for (const Variable& v : session.variables().all()) {
    if (!v.is_recorded() || !is_float(v.type.dtype)) continue;
    const Tensor value = session.values().value(v);
    if (first_nonfinite_element(value.data(), value.dtype(), value.numel()))
      names.push_back(v.name);
  }
  return names;
}

LoadReport Executor::load(const std::string& path, const LoadOptions& options) {
  const auto use = impl_.lock();
  impl_->averages().require_not_in_use("load()");
  LoadedParameters loaded =
      read_parameters(path, options, impl_->recorded_program(), impl_->recorded_variables());
  impl_->merged_adapters().load(
      loaded, lora_adapters(impl_->recorded_program()),
      [&](const std::string& name) { return impl_->value_of(name); }, path);
  for (const auto& [name, value] : loaded.values) impl_->set_value(name, value);
  if (loaded.metadata.column_table != nullptr) {
    impl_->set_column_table(std::move(loaded.metadata.column_table));
  }
  return std::move(loaded.report);
}

void Executor::set_column_table(ColumnTablePtr table) { impl_->set_column_table(std::move(table)); }
ColumnTablePtr Executor::column_table() const { return impl_->column_table(); }

void Executor::use_averages(bool use) {
  const auto lock = impl_.lock();
  impl_->session();
  impl_->averages().set_in_use(use);
}

bool Executor::uses_averages() const { return impl_->averages().in_use(); }

Snapshot Executor::snapshot() { return impl_->snapshot(); }

std::string Executor::restore(Snapshot snapshot, const std::string& name) {
  return impl_->restore(std::move(snapshot), name);
}

std::vector<std::string> Executor::parameters() const {
  const auto use = impl_.lock();
  std::vector<std::string> names;
  for (const Variable& v : impl_->recorded_variables()) names.push_back(v.name);
  return names;
}

Tensor Executor::parameter(std::string_view name) {
  const auto use = impl_.lock();
  return impl_->value_of(name).copy();
}

void Executor::set_parameter(std::string_view name, const Tensor& value) {
  const auto use = impl_.lock();
  impl_->averages().require_not_in_use("set_parameter()");
  Session& session = impl_->session();
  const Variable& variable = session.variables().at(name);
  check_value(variable.name, variable.type, value, "");
  session.values().assign(variable, value);
}

bool Executor::checks_finite() const { return impl_->checks_finite(); }

Place Executor::place() const { return impl_->place(); }

const std::optional<AmpOptions>& Executor::amp() const { return impl_->amp(); }
const std::optional<AmpChoice>& Executor::amp_choice() const { return impl_->amp_choice(); }

std::optional<LossScaling> Executor::loss_scaling(std::string_view recipe) const {
  const auto use = impl_.lock();
  if (!impl_->scales_loss()) return std::nullopt;
  VariableValues& values = impl_->session().values();
  const Tensor skipped = values.value(impl_->recipe_variable(recipe, kSkippedSteps));
  return LossScaling{.scale = values.value(impl_->recipe_variable(recipe, kLossScale)).item(),
                     .skipped = static_cast<int64_t>(skipped.item())};
}

bool Executor::reduce_on_plateau(double metric, std::string_view recipe) {
  const auto use = impl_.lock();
  const std::optional<PlateauRule>& rule = impl_->plateau(recipe);
  if (!rule) return false;
  bool reduced = false;
  impl_->change_plateau(recipe,
                        [&](std::span<double> state) { reduced = rule->update(metric, state); });
  return reduced;
}

void Executor::set_learning_rate(double lr, std::string_view recipe) {
  const auto use = impl_.lock();
  const double recorded = impl_->manual_base_lr(recipe);
  if (!(lr > 0) || !std::isfinite(lr)) {
    throw UserError(fmt::format("set_learning_rate({}): the rate must be positive and finite", lr));
  }
  impl_->change_plateau(recipe, [&](std::span<double> state) { state[kFactor] = lr / recorded; });
}

bool Executor::uses_plateau_schedule(std::string_view recipe) const {
  return impl_->plateau(recipe).has_value();
}

std::optional<double> Executor::learning_rate(std::string_view recipe) const {
  const auto use = impl_.lock();
  if (!impl_->has_schedule(recipe)) return std::nullopt;
  Session& session = impl_->session();
  return session.values().value(impl_->recipe_variable(recipe, kLearningRate)).item();
}

Profile Executor::profile() const { return impl_->session().profile(); }
PeakRates Executor::peak_rates() const { return impl_->session().device().peak_rates(); }

MemoryUse Executor::memory() const {
  const auto use = impl_.lock();
  Session& session = impl_->session();
  const PlaceMemory& memory = session.memory();
  return {.total = memory.regions().total_bytes(),
          .state = session.variables().bytes(),
          .slots = memory.regions().slot_bytes(),
          .transient = memory.regions().transient,
          .resident_bytes = memory.resident_bytes(),
          .memory_outside_arenas = session.device().memory_outside_arenas(),
          .pinned_bytes = session.device().pinned_bytes()};
}

CompileReport Executor::compile_report() const {
  const auto use = impl_.lock();
  Session& session = impl_->session();
  CompileReport report = session.device().report();
  session.steps().report_passes(report);
  return report;
}

std::string Executor::text(Mode mode, int64_t batch, int64_t length,
                           std::string_view recipe) const {
  const auto use = impl_.lock();
  std::string text;
  std::set<const CompiledProgram*> printed;
  for (const PreparedStep::Run& run : impl_->prepared(mode, recipe, batch, length).runs()) {
    if (printed.insert(run.compiled).second) text += ir::print(*run.compiled->program);
  }
  return text;
}

}  // namespace fluid
