#include "executor/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "executor/bytes_text.h"
#include "ops/group.h"
#include "ops/source_kind.h"
#include "ops/table.h"
#include "passes/metrics.h"
#include "passes/pass.h"

namespace fluid {
namespace {

double ms_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

int64_t rounded(int64_t bytes) { return (bytes + 63) / 64 * 64; }

std::vector<int64_t> extents(const Shape& shape, int64_t batch) {
  std::vector<int64_t> dims;
  for (const Dim& d : shape) dims.push_back(d.at(batch));
  return dims;
}

Memory memory_of(const Arena& arena, const Regions& regions) {
  Memory memory;
  memory.state = arena.data();
  memory.slots = {memory.state + regions.state, memory.state + regions.state + regions.slot};
  memory.transient = memory.slots[1] + regions.slot;
  return memory;
}

std::vector<Feed> feeds_of(const ir::Program& final_program, const MemoryPlan& plan,
                           const ir::Program& recorded) {
  std::vector<Feed> feeds;
  for (const auto& op : final_program.main().ops) {
    if (source_kind(*op) != SourceKind::feed) continue;
    const ir::Op* declared = recorded.main().find(op->name, op->symbol);
    check(declared != nullptr, "feed '" + op->symbol + "' was not recorded");
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

/// The operand of a fused op that its body reads as `v`; null when the body computes it.
Value operand_of(const ir::Op& fused, Value v) {
  if (source_kind(*v.op()) != SourceKind::argument) return {};
  return fused.operands.at(static_cast<size_t>(v.op()->attrs.get<int64_t>("index")));
}

/// ", in sample 3 of the batch", of the first that holds `value`; "" when none does.
std::string sample_text(const ir::Op& feed, const Batch& batch, int64_t value) {
  const Tensor* fed = batch.find(feed.symbol);
  const Shape& shape = feed.results.at(0).type.shape;
  if (fed == nullptr || shape.empty() || !shape.front().batch) return "";
  for (int64_t i = 0; i < fed->numel(); ++i) {
    if (fed->at(i) != static_cast<double>(value)) continue;
    return fmt::format(", in sample {} of the batch", i / (fed->numel() / batch.size));
  }
  return "";
}

/// What a user can do about data that a kernel refused: the recorded op and line, the index and
/// what it may be, and the feed that holds it, if it is not computed.
UserError refusal(const Status& status, const Batch& batch) {
  const ir::Op& fused = *status.op;
  const Value read = fused.operands.at(static_cast<size_t>(status.argument));
  const ir::Op* op = &fused;
  std::string what = fmt::format("index {}", status.index), range, sample;
  const auto& body = fused.attrs.get<GraphRef>("body").name;
  for (const auto& inner : fused.graph()->program().find(body)->ops) {
    const auto checked = checked_operands(*inner);
    Value from, index;
    size_t dim = 0;
    for (size_t i = 0; i < inner->operands.size(); ++i) {
      const Value v = inner->operands[i];
      const auto at = checked.find(static_cast<int64_t>(i));
      if (at != checked.end() && operand_of(fused, v) == read) {
        from = v;
        dim = at->second;
      } else if (!is_float(v.dtype())) {
        index = v;
      }
    }
    if (!from || !index) continue;
    op = inner.get();
    range = fmt::format(" [0, {})", from.shape()[dim].at(batch.size));
    const Value given = operand_of(fused, index);
    if (!given) continue;
    const ir::Op* root = root_of(given).op();
    if (source_kind(*root) != SourceKind::feed) continue;
    what = fmt::format("value {} of feed '{}'", status.index, root->symbol);
    sample = sample_text(*root, batch, status.index);
  }
  return UserError(op->loc,
                   fmt::format("{}: {} is out of range{}{}; the step was not applied",
                               op->attrs.get_or("part_of", op->name), what, range, sample));
}

}  // namespace

Session::Session(std::unique_ptr<ir::Program> recorded, std::unique_ptr<Device> device,
                 uint64_t seed, Options base, int64_t memory_limit)
    : recorded_(std::move(recorded)),
      device_(std::move(device)),
      seed_(seed),
      base_(std::move(base)),
      memory_limit_(memory_limit) {}

Regions Session::regions_with(const MemoryPlan& plan, int64_t state) const {
  return {.state = std::max(regions_.state, state),
          .slot = std::max(regions_.slot, rounded(plan.slot)),
          .transient = std::max(regions_.transient, rounded(plan.transient))};
}

void Session::check_memory(const MemoryPlan& plan, int64_t batch) const {
  const int64_t need = regions_with(plan, plan.state).total();
  if (need <= memory_limit_) return;
  throw UserError(fmt::format("a step of {} samples needs {}, the limit is {}", batch,
                              bytes_text(static_cast<double>(need)),
                              bytes_text(static_cast<double>(memory_limit_))));
}

std::unique_ptr<Prepared> Session::compile(const Options& options) {
  const auto start = std::chrono::steady_clock::now();
  auto step = std::make_unique<Prepared>();
  step->options = options;
  step->program = recorded_->clone();
  run_passes(*step->program, pipeline(options), options, device_->target());
  step->plan = memory_plan(*step->program, options);
  if (options.guard_plan) verify_plan(step->plan, *step->program, options);
  passes_ms_ += ms_since(start);
  check_memory(step->plan, options.batch);
  step->executable = device_->build(*step->program, step->plan, options);
  step->feeds = feeds_of(*step->program, step->plan, *recorded_);
  return step;
}

Variables Session::variables_with(const Prepared& step) const {
  Variables variables = variables_;
  auto add = [&](const std::string& name, const Type& type) {
    const bool saved =
        name != kRandomState && std::ranges::any_of(recorded_->main().ops, [&](const auto& op) {
          return op->symbol == name && is_variable(*op);
        });
    variables.add(name, type, saved);
  };
  for (const auto& op : step.program->main().ops) {
    if (is_variable(*op)) add(op->symbol, op->results[0].type);
    if (std::holds_alternative<Store>(*def_of(*op).lower)) {
      add(op->symbol, op->operands.at(0).type());
    }
  }
  return variables;
}

Prepared* Session::find(Mode mode, int64_t batch, const std::set<std::string>& feeds) {
  for (const auto& step : steps_) {
    const Options& o = step->options;
    if (o.mode == mode && o.batch == batch && o.feeds == feeds) return step.get();
  }
  return nullptr;
}

Prepared* Session::find_predict(const Batch& batch) {
  Prepared* best = nullptr;
  for (const auto& step : steps_) {
    if (step->options.mode != Mode::predict || step->options.batch != batch.size) continue;
    const bool enough = std::ranges::all_of(
        step->feeds, [&](const Feed& feed) { return batch.find(feed.name) != nullptr; });
    if (enough && (best == nullptr || step->outputs[0].size() > best->outputs[0].size())) {
      best = step.get();
    }
  }
  return best;
}

Prepared& Session::prepare(const Options& options) {
  if (Prepared* known = find(options.mode, options.batch, options.feeds)) return *known;
  // Whatever can fail for want of memory comes first: a session never keeps half a step.
  std::unique_ptr<Prepared> step = compile(options);
  Variables variables = variables_with(*step);
  const Regions regions = regions_with(step->plan, variables.bytes());
  std::shared_ptr<Arena> arena;
  if (regions != regions_) arena = std::make_shared<Arena>(regions.total());
  steps_.push_back(std::move(step));
  variables_ = std::move(variables);
  if (arena) {
    move_to(std::move(arena), regions);
  } else {
    bind(*steps_.back());
  }
  return *steps_.back();
}

void Session::move_to(std::shared_ptr<Arena> arena, const Regions& regions) {
  const int64_t known_state = regions_.state;
  const auto known_slot = static_cast<size_t>(regions_.slot);
  const std::shared_ptr<Arena> old = std::exchange(arena_, std::move(arena));
  const Memory from = memory_of(*old, regions_);
  const Memory to = memory_of(*arena_, regions);
  if (known_state > 0) std::memcpy(to.state, from.state, static_cast<size_t>(known_state));
  for (size_t slot = 0; known_slot > 0 && slot < 2; ++slot) {
    std::memcpy(to.slots[slot], from.slots[slot], known_slot);
  }
  regions_ = regions;
  const Variable* random = variables_.find(kRandomState);
  if (random != nullptr && random->offset >= known_state) {
    std::memcpy(to.state + random->offset, &seed_, sizeof seed_);
  }
  held_ = {};
  for (const auto& step : steps_) bind(*step);
}

Memory Session::memory() const { return memory_of(*arena_, regions_); }

void Session::bind(Prepared& step) {
  step.executable->bind(memory(), variables_);
  for (size_t slot = 0; slot < 2; ++slot) bind_outputs(step, slot, memory());
}

void Session::bind_outputs(Prepared& step, size_t slot, const Memory& memory) {
  const auto& outputs = step.program->main().outputs;
  auto view_of = [&](const ir::Output& o) {
    const Range& range = step.plan.values.at(o.value);
    check(range.region == Region::slot, "output '" + o.name + "' has no slot");
    return Tensor::view(o.value.dtype(), extents(o.value.shape(), step.options.batch),
                        memory.slots[slot] + range.offset, arena_);
  };
  auto part_of = [&](const std::string& name, std::string_view part) {
    const auto found = std::find_if(outputs.begin(), outputs.end(), [&](const ir::Output& o) {
      return o.name == name + std::string(part);
    });
    check(found != outputs.end(), "metric '" + name + "' lacks its parts");
    return view_of(*found);
  };
  // In place: a user may hold them, with the figures of a step that has run.
  std::vector<Output>& bound = step.outputs[slot];
  const bool first = bound.empty();
  size_t number = 0;
  step.metrics[slot].clear();
  for (const ir::Output& declared : recorded_->main().outputs) {
    const auto found = std::find_if(outputs.begin(), outputs.end(),
                                    [&](const ir::Output& o) { return o.name == declared.name; });
    if (found == outputs.end()) continue;
    if (is_metric(declared.value)) {
      step.metrics[slot].push_back(
          {number, part_of(found->name, kMetricSum), part_of(found->name, kMetricWeight)});
    }
    if (first) bound.push_back({.name = found->name, .metric = is_metric(declared.value)});
    bound[number++].value = view_of(*found);
  }
}

void Session::initialise() {
  if (initialised_) return;
  initialised_ = true;
  Options options = base_;
  options.mode = Mode::init;
  options.batch = 1;
  run(prepare(options), Batch());
}

void Session::copy_feeds(Prepared& step, const Batch& batch) {
  Held& overwritten = held_[static_cast<size_t>(slots_.outputs)];
  if (overwritten.step != &step) overwritten = {};
  for (const int slot : {0, 1}) {
    const Held& held = held_[static_cast<size_t>(slot)];
    if (batch.id != 0 && held.step == &step && held.id == batch.id) {
      slots_.feeds = slot;
      return;
    }
  }
  // Not the other slot: the step before may have left outputs there that are still to be read.
  slots_.feeds = slots_.outputs;
  std::byte* to = memory().slots[static_cast<size_t>(slots_.feeds)];
  for (const Feed& feed : step.feeds) {
    copy_feed(*batch.find(feed.name), feed, to + feed.offset, device_->threads());
  }
  held_[static_cast<size_t>(slots_.feeds)] = {&step, batch.id};
}

Outputs Session::run(Prepared& step, const Batch& batch) {
  copy_feeds(step, batch);
  const Status status = step.executable->run(slots_);
  if (!status.good()) throw refusal(status, batch);
  const auto slot = static_cast<size_t>(slots_.outputs);
  for (const MetricView& metric : step.metrics[slot]) {
    Output& output = step.outputs[slot][metric.output];
    output.sum = metric.sum.item();
    output.weight = metric.weight.item();
  }
  slots_.outputs ^= 1;
  return Outputs(&step.outputs[slot]);
}

Tensor Session::view(const Variable& variable) {
  return Tensor::view(variable.type.dtype, extents(variable.type.shape, 1),
                      arena_->data() + variable.offset);
}

}  // namespace fluid
