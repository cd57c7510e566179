#include "executor/executor.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <set>

#include "executor/comm/agree.h"
#include "executor/cpu/cpu_device.h"
#include "executor/cpu/parallel.h"
#include "executor/executor_checks.h"
#include "executor/gpu/backend.h"
#include "executor/gpu/gpu_device.h"
#include "executor/result_options.h"
#include "executor/session.h"
#include "executor/session_options.h"
#include "frontend/files/safetensors.h"
#include "ir/print.h"
#include "ops/optim/plateau.h"
#include "ops/source_kind.h"
#include "passes/inference.h"
#include "passes/loss_scale.h"
#include "passes/recipe.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

std::unique_ptr<Device> device_of(Place place, const ExecutorOptions& options,
                                  Communicator* communicator) {
  if (place.kind == Place::Kind::cuda) {
    const FluidGpuTable& table = usable_gpu(gpu_backend(), place.index);
    return gpu_device(table, {.device = place.index,
                              .host_threads = thread_count(options.threads),
                              .cache_dir = options.cache_dir,
                              .libraries = {options.workspace, options.tf32},
                              .tune = options.tune,
                              .decisions = options.decisions,
                              .peers = {.world = options.world,
                                        .control = communicator,
                                        .timeout = options.comm_timeout,
                                        .first_timeout = options.first_timeout}});
  }
  return cpu_device(
      {.threads = options.threads, .cache_dir = options.cache_dir, .communicator = communicator});
}

std::vector<std::string> feed_names(const ir::Program& program) {
  std::vector<std::string> names;
  for (const auto& op : program.main().ops) {
    if (source_kind(*op) == SourceKind::feed) names.push_back(op->symbol);
  }
  return names;
}

/// What rank 0 chooses, where the options leave it open.
std::optional<AmpChoice> chosen_amp(const Program& program, Place place, ExecutorOptions options,
                                    Communicator* communicator) {
  if (communicator != nullptr) {
    agree(*communicator, options.world, "choice of precision", options.choose_amp ? 1 : 0);
  }
  if (!options.choose_amp) return std::nullopt;
  if (!options.amp) options.amp = AmpOptions();
  check_amp(options);
  AmpChoice choice;
  if (options.chosen_amp) {
    choice.precision = *options.chosen_amp;
  } else if (options.world.rank == 0) {
    if (options.batch < 1) throw UserError("choose_amp times training steps: it needs a batch");
    choice = choose_amp(program, place, options);
  }
  if (communicator != nullptr) {
    communicator->meet(options.first_timeout);
    communicator->broadcast(&choice, sizeof choice, 0);
  }
  return choice;
}

ExecutorOptions with_choice(ExecutorOptions options, const std::optional<AmpChoice>& choice) {
  if (choice) options.amp = amp_of(*choice, options.amp);
  return options;
}

ExecutorOptions alone(ExecutorOptions options) {
  if (options.world.size > 1 || options.exchange_alone || options.choose_amp) {
    throw UserError("several processes and choose_amp need a place that Fluid knows by name");
  }
  return options;
}

std::string_view name_of(Mode mode) {
  return mode == Mode::train ? "run" : mode == Mode::eval ? "eval" : "predict";
}

}  // namespace

class Executor::Impl {
 public:
  /// On `device`, or where there is none on that of `place`.
  Impl(const Program& program, Place place, ExecutorOptions options,
       std::unique_ptr<Device> device = nullptr)
      : place_(place),
        communicator_(communicator_of(place, options)),
        amp_choice_(chosen_amp(program, place, options, communicator_.get())),
        options_(with_choice(std::move(options), amp_choice_)),
        trains_(find_directive(program.ir().main()) != nullptr),
        scheduled_(trains_ && find_directive(program.ir().main())->attrs.has("schedule")),
        plateau_(trains_ ? plateau_rule(find_directive(program.ir().main())->attrs) : std::nullopt),
        known_feeds_(feed_names(program.ir())),
        session_(program.ir().clone(),
                 device ? std::move(device) : device_of(place, options_, communicator_.get()),
                 session_options(options_, place)) {
    if (program.ir().main().outputs.empty()) {
      throw UserError("program '" + program.ir().name + "' has no output: mark one with output()");
    }
    check_options(options_);
    if (options_.batch > 0) prepare(Mode::train, options_.batch, {});
  }

  void prepare(const Prepare& sizes) {
    std::vector<Options> steps;
    for (const int64_t batch : sizes.train) steps.push_back(step(Mode::train, batch, {}));
    for (const int64_t batch : sizes.eval) steps.push_back(step(Mode::eval, batch, {}));
    const std::set<std::string> feeds = checked_feeds(sizes.predict_feeds);
    for (const int64_t batch : sizes.predict) {
      steps.push_back(step(Mode::predict, batch, feeds));
    }
    if (steps.empty()) return;
    session_.prepare(steps);
    session_.initialise();
    share_decisions();
  }

  Outputs run(Mode mode, const Batch& batch) {
    const bool together = mode == Mode::train && communicator_;
    if (together && options_.world.size > 1 && (batch.whole < batch.size || batch.whole == 0)) {
      throw UserError(fmt::format(
          "run() got a batch of {} samples that does not say of how many on all ranks: set "
          "Batch::first and Batch::whole, as a Reader with rank and world does",
          batch.size));
    }
    PreparedStep* step = find(mode, batch);
    if (step == nullptr) {
      if (!options_.any_batch) throw UserError(unprepared(mode, batch));
      step = &prepare(mode, batch.size, mode == Mode::predict ? given(batch) : no_feeds());
    }
    check_feeds(batch, step->feeds(), known_feeds_);
    session_.initialise();  // which may have failed when the step was prepared
    if (together && !started_) start();
    if (together) session_.settle_inference();
    return session_.run(*step, batch);
  }

  std::string first_nonfinite(const Batch& batch) {
    check(options_.check_finite, "first_nonfinite() without check_finite");
    PreparedStep* step = find(Mode::train, batch);
    check(step != nullptr, "first_nonfinite() without a step before it");
    const std::string here = session_.first_nonfinite(*step, batch);
    if (!communicator_) return here;
    meet();
    return first_said(*communicator_, options_.world, here);
  }

  std::vector<std::string> left_out(const std::vector<std::string>& feeds) {
    return outputs_left_out(session_.recorded(),
                            pass_options(Mode::predict, 1, checked_feeds(feeds)));
  }

  /// What changes the bits of a result, as text.
  std::map<std::string, std::string> result_options() const {
    return fluid::result_options(session_.recorded(), options_, place_,
                                 session_.device().threads());
  }

  Place place() const { return place_; }
  const std::optional<AmpOptions>& amp() const { return options_.amp; }
  const std::optional<AmpChoice>& amp_choice() const { return amp_choice_; }
  bool trains() const { return trains_; }

  void broadcast() {
    if (!communicator_) return;
    started_ ? send(session().initialised()) : start();
  }

  void broadcast_recorded() {
    if (!communicator_) return;
    std::vector<Variable> written;
    for (const auto& op : session_.recorded().main().ops) {
      if (is_store(*op)) written.push_back(session_.variables().named(op->symbol));
    }
    meet_before_start();
    send(written);
  }

  std::string share(const std::string& text) {
    if (!communicator_) return text;
    meet_before_start();
    return text_of_rank(*communicator_, options_.world, text, 0);
  }

  void lead(const std::function<void()>& work) {
    std::string failure;
    std::exception_ptr thrown;
    try {
      if (options_.world.rank == 0) work();
    } catch (const std::exception& e) {
      failure = e.what();
      thrown = std::current_exception();
    }
    if (started_) meet();
    failure = share(failure);
    if (thrown) std::rethrow_exception(thrown);
    if (!failure.empty()) throw UserError("rank 0: " + failure);
  }

  /// A variable's value; of one that the processes share, all of it, on rank 0 alone: then a call
  /// of all ranks.
  std::optional<Tensor> whole(const Variable& v) {
    const Tensor own = session_.value(v);
    if (!v.part) return own;
    Tensor all(own.dtype(), v.part->whole);
    for (int rank = 0; rank < options_.world.size; ++rank) {
      std::byte* part = v.part->in(all, rank);
      const int64_t bytes = v.part->elements(rank) * size_of(own.dtype());
      if (rank == options_.world.rank) std::memcpy(part, own.data(), static_cast<size_t>(bytes));
      communicator_->broadcast(part, bytes, rank);
    }
    return options_.world.rank == 0 ? std::optional(all) : std::nullopt;
  }

  void scatter(const Snapshot* from) {
    std::vector<Variable> variables = session().variables().all();
    std::ranges::sort(variables, {}, &Variable::name);
    for (const Variable& v : variables) {
      if (!v.part) continue;
      Tensor whole(v.type.dtype, v.part->whole);
      if (from != nullptr) whole = from->find(v.name)->value.cast(v.type.dtype).copy();
      communicator_->broadcast(whole.data(), whole.bytes(), 0);
      session_.assign(v, v.part->own_of(whole));
    }
  }

  void agree(const std::string& what, const std::string& value) {
    if (!communicator_) return;
    meet_before_start();
    fluid::agree(*communicator_, options_.world, what, XXH3_64bits(value.data(), value.size()));
  }

  void add_up(std::span<double> figures) {
    if (!communicator_) return;
    meet_before_start();
    communicator_->all_reduce(figures.data(), static_cast<int64_t>(figures.size()), f64);
  }

  /// What other ranks have decided that prepared steps which this one may never have: all of it is
  /// in a checkpoint, so that each finds its own there, whoever writes it.
  void hear_decisions() {
    if (!communicator_ || !started_ || session_.device().decisions().empty()) return;
    std::map<std::string, std::string> heard;
    try {
      while (const auto next = communicator_->proposal(proposals_heard_)) {
        ++proposals_heard_;
        if (decided_.insert(*next).second) heard.insert(*next);
      }
    } catch (const DeviceError&) {
      // Rank 0, which is asked, may be gone: a snapshot is worth more than what others decided.
    }
    if (!heard.empty()) session_.take(heard);
  }

  bool scales_loss() const { return trains_ && options_.amp && options_.amp->scales_loss(); }
  /// A scale that other options have led to may not be one of these options.
  void bound_loss_scale() {
    if (!scales_loss()) return;
    const LossScale& s = options_.amp->loss_scale;
    const Variables& variables = session_.variables();
    Tensor scale = session_.value(variables.named(kLossScale)).copy();
    Tensor good = session_.value(variables.named(kGoodSteps)).copy();
    const double bound =
        s.dynamic ? std::clamp<double>(scale.item(), s.floor, s.ceiling) : s.initial;
    scale.as<float>()[0] = static_cast<float>(bound);
    good.as<int64_t>()[0] = std::min(good.as<int64_t>()[0], s.interval - 1);
    session_.assign(variables.named(kLossScale), scale);
    session_.assign(variables.named(kGoodSteps), good);
  }

  bool has_schedule() const { return scheduled_; }
  const std::optional<PlateauRule>& plateau() const { return plateau_; }

  Session& session() {
    session_.initialise();
    return session_;
  }

  const PreparedStep& prepared(Mode mode, int64_t batch) { return prepare(mode, batch, {}); }

 private:
  static std::set<std::string> no_feeds() { return {}; }

  static std::unique_ptr<Communicator> communicator_of(Place place,
                                                       const ExecutorOptions& options) {
    if (options.world.size == 1 && !options.exchange_alone) return nullptr;
    check_shared_statistics(options);
    auto communicator = make_communicator(options.world, options.first_timeout);
    communicator->set_timeout(options.comm_timeout);
    fluid::agree(*communicator, options.world, "kind of place", place == cpu() ? 0 : 1);
    return communicator;
  }

  /// Waits for ranks that come at quite different times, as where one has worked for all.
  void meet() {
    if (communicator_) communicator_->meet(options_.first_timeout);
  }
  /// As they do before the first step, which they compile.
  void meet_before_start() {
    if (!started_) meet();
  }

  void start() {
    if (options_.zero > 0 && !session_.has_step_for(Mode::train)) {
      throw UserError("prepare() a training step before broadcast(): its state is shared");
    }
    meet();
    started_ = true;
    agree("program", ir::print(session_.recorded()));
    const std::set<std::string> may_differ = {"seed", "threads", "tuning"};  // rank 0's counts
    std::string options;
    for (const auto& [name, value] : result_options()) {
      if (!may_differ.contains(name)) options += name + " " + value + ", ";
    }
    const Buckets& b = options_.buckets;
    agree("set of options",
          fmt::format("{}buckets {} {}, check_finite {}, zero {}", options, b.first_bytes, b.bytes,
                      options_.check_finite, options_.zero));
    if (place_.kind == Place::Kind::cuda) {
      decided_ = together(*communicator_, options_.world, session_.device().decisions());
      session_.take(decided_);
    }
    send(session().initialised());
  }

  /// Of what is prepared after the first step ranks may each prepare something else: what one of
  /// them decides first holds for all that come to decide the same.
  void share_decisions() {
    if (!started_) return;  // start() shares all
    std::map<std::string, std::string> first;
    for (const auto& [key, own] : session_.device().decisions()) {
      if (!decided_.contains(key)) first.emplace(key, communicator_->propose(key, own));
    }
    if (first.empty()) return;
    decided_.insert(first.begin(), first.end());
    session_.take(first);
  }

  /// Rank 0's, of variables that every rank names in this order.
  void send(const std::vector<Variable>& variables) {
    for (const Variable& v : variables) {
      if (!v.part) session_.broadcast(v);
    }
    session_.refresh_halves();
  }

  /// What the passes are to make of a step that was asked for.
  Options step(Mode mode, int64_t batch, const std::set<std::string>& feeds) const {
    const bool none_is_fine = communicator_ != nullptr && mode == Mode::train;
    if (batch < 0 || (batch == 0 && !none_is_fine)) {
      throw UserError("cannot prepare a batch of " + std::to_string(batch) + " samples");
    }
    return pass_options(actual(mode), batch, feeds);
  }

  PreparedStep& prepare(Mode mode, int64_t batch, const std::set<std::string>& feeds) {
    PreparedStep& prepared = session_.prepare(step(mode, batch, feeds));
    session_.initialise();
    share_decisions();
    return prepared;
  }

  /// Without a recipe there is no training step: run() is then what eval() is.
  Mode actual(Mode mode) const { return mode == Mode::train && !trains_ ? Mode::eval : mode; }

  Options pass_options(Mode mode, int64_t batch, const std::set<std::string>& feeds) const {
    Options o = session_options(options_).passes;
    o.mode = mode;
    o.batch = batch;
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

  std::set<std::string> given(const Batch& batch) const {
    std::vector<std::string> names;
    for (const auto& [name, column] : batch.columns) names.push_back(name);
    return checked_feeds(names);
  }

  /// The step for a batch, found without allocating.
  PreparedStep* find(Mode mode, const Batch& batch) {
    static const std::set<std::string> kAll;
    mode = actual(mode);
    if (mode != Mode::predict) return session_.find(mode, batch.size, kAll);
    return session_.find_predict(batch);
  }

  std::string unprepared(Mode mode, const Batch& batch) const {
    const std::string_view verb = mode == Mode::train ? "train" : name_of(mode);
    return fmt::format(
        "{}() got a batch of {} samples, which was not prepared: call prepare({{.{} = {{{}}}}}) "
        "first, or set any_batch",
        name_of(mode), batch.size, verb, batch.size);
  }

  Place place_;                                 ///< cpu() too for a device of the caller's own
  std::unique_ptr<Communicator> communicator_;  ///< null: this process is alone
  std::optional<AmpChoice> amp_choice_;
  ExecutorOptions options_;
  bool trains_;
  bool scheduled_;  ///< the learning rate
  std::optional<PlateauRule> plateau_;
  std::vector<std::string> known_feeds_;
  bool started_ = false;                        ///< the first step has begun
  std::map<std::string, std::string> decided_;  ///< the device's decisions that all ranks share
  int64_t proposals_heard_ = 0;                 ///< of those decided after the first step
  Session session_;
};

Executor::Executor(const Program& program, Place place, ExecutorOptions options)
    : impl_(std::make_unique<Impl>(program, place, std::move(options))) {}

Executor::Executor(const Program& program, std::unique_ptr<Device> device, ExecutorOptions options)
    : impl_(std::make_unique<Impl>(program, cpu(), alone(std::move(options)), std::move(device))) {}
Executor::~Executor() = default;
Executor::Executor(Executor&&) noexcept = default;

void Executor::prepare(const Prepare& sizes) { impl_->prepare(sizes); }
void Executor::broadcast() { impl_->broadcast(); }
void Executor::scatter(const Snapshot* from) { impl_->scatter(from); }
void Executor::broadcast_recorded() { impl_->broadcast_recorded(); }
std::string Executor::share(const std::string& text) { return impl_->share(text); }
void Executor::lead(const std::function<void()>& work) { impl_->lead(work); }
void Executor::agree(const std::string& what, const std::string& value) {
  impl_->agree(what, value);
}
void Executor::add_up(std::span<double> figures) { impl_->add_up(figures); }
Outputs Executor::run(const Batch& batch) { return impl_->run(Mode::train, batch); }
Outputs Executor::eval(const Batch& batch) { return impl_->run(Mode::eval, batch); }
Outputs Executor::predict(const Batch& batch) { return impl_->run(Mode::predict, batch); }

std::string Executor::first_nonfinite(const Batch& batch) { return impl_->first_nonfinite(batch); }

std::vector<std::string> Executor::left_out(const std::vector<std::string>& feeds) {
  return impl_->left_out(feeds);
}

void Executor::save(const std::string& path) {
  Session& session = impl_->session();
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (const Variable& v : session.variables().all()) {
    if (v.saved()) tensors.emplace_back(v.name, session.value(v));
  }
  write_safetensors(path, tensors);
}

void Executor::load(const std::string& path) {
  const TensorFile file = read_safetensors(path);
  const std::vector<std::string> names = parameters();
  for (const std::string& name : names) {
    if (file.find(name) == nullptr) {
      throw UserError(path + ": parameter '" + name + "' is missing");
    }
  }
  for (const auto& [name, tensor] : file.tensors) {
    if (std::ranges::find(names, name) == names.end()) {
      throw UserError(path + ": the program has no parameter '" + name + "'" +
                      did_you_mean(name, names));
    }
    check_value(name, tensor, path + ": ");
  }
  for (const auto& [name, tensor] : file.tensors) set_parameter(name, tensor);
}

Snapshot Executor::snapshot() {
  impl_->hear_decisions();
  return take_snapshot(impl_->session(), impl_->result_options(),
                       [&](const Variable& v) { return impl_->whole(v); });
}

std::string Executor::restore(const Snapshot& from, const std::string& where) {
  const bool prepared = !impl_->trains() || impl_->session().has_step_for(Mode::train);
  if (!prepared) throw UserError(where + ": prepare() a training step before restore()");
  restore_snapshot(impl_->session(), from, where);
  impl_->bound_loss_scale();
  return changed_results(from.options, impl_->result_options());
}

std::vector<std::string> Executor::parameters() const {
  std::vector<std::string> names;
  for (const Variable& v : impl_->session().variables().all()) {
    if (v.saved()) names.push_back(v.name);
  }
  return names;
}

Tensor Executor::parameter(std::string_view name) {
  Session& session = impl_->session();
  return session.value(session.variables().named(name)).copy();
}

void Executor::check_value(std::string_view name, const Tensor& value,
                           const std::string& where) const {
  Session& session = impl_->session();
  const Tensor current = session.value(session.variables().named(name));
  const bool converts =
      current.dtype() == value.dtype() || (is_float(current.dtype()) && is_float(value.dtype()));
  if (current.shape() != value.shape() || !converts) {
    throw UserError(where + "'" + std::string(name) + "' is given as " + value.str() +
                    ", but the parameter is " + current.str());
  }
}

void Executor::set_parameter(std::string_view name, const Tensor& value) {
  check_value(name, value, "");
  Session& session = impl_->session();
  session.assign(session.variables().named(name), value);
}

Place Executor::place() const { return impl_->place(); }

const std::optional<AmpOptions>& Executor::amp() const { return impl_->amp(); }
const std::optional<AmpChoice>& Executor::amp_choice() const { return impl_->amp_choice(); }

std::optional<LossScaling> Executor::loss_scaling() const {
  if (!impl_->scales_loss()) return std::nullopt;
  Session& session = impl_->session();
  const Variables& variables = session.variables();
  const Tensor skipped = session.value(variables.named(kSkippedSteps));
  return LossScaling{.scale = session.value(variables.named(kLossScale)).item(),
                     .skipped = static_cast<int64_t>(skipped.item())};
}

bool Executor::reduce_on_plateau(double loss) {
  if (!impl_->plateau()) return false;
  Session& session = impl_->session();
  const Variable& variable = session.variables().named(kPlateau);
  Tensor state = session.value(variable).copy();
  const bool reduced = impl_->plateau()->take(loss, state.as<double>());
  session.assign(variable, state);
  return reduced;
}

bool Executor::follows_plateau() const { return impl_->plateau().has_value(); }

std::optional<double> Executor::learning_rate() const {
  if (!impl_->has_schedule()) return std::nullopt;
  Session& session = impl_->session();
  return session.value(session.variables().named(kLearningRate)).item();
}

Profile Executor::profile() const { return impl_->session().profile(); }
Limits Executor::limits() const { return impl_->session().device().limits(); }

MemoryUse Executor::memory() const {
  Session& session = impl_->session();
  const PlaceMemory& memory = session.memory();
  return {.total = memory.regions().total(),
          .state = session.variables().bytes(),
          .slots = 2 * memory.regions().slot,
          .transient = memory.regions().transient,
          .touched = memory.touched(),
          .outside = session.device().outside(),
          .pinned = session.device().pinned()};
}

CompileReport Executor::compile_report() const {
  Session& session = impl_->session();
  CompileReport report = session.device().report();
  report.passes_ms = session.passes_ms();
  return report;
}

std::string Executor::text(Mode mode, int64_t batch) const {
  std::string text;
  std::set<const Part*> printed;
  for (const PreparedStep::Run& run : impl_->prepared(mode, batch).runs()) {
    if (printed.insert(run.part).second) text += ir::print(*run.part->program);
  }
  return text;
}

}  // namespace fluid
