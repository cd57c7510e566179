#include "executor/session/variable_values.h"

#include <algorithm>
#include <utility>

#include "ops/random/initializer.h"
#include "ops/source_kind.h"
#include "passes/half_weights.h"
#include "passes/rewrite.h"

namespace fluid {

void VariableValues::set_value(const std::string& name, const Tensor& value) {
  if (!allocated_) {
    deferred_values_.insert_or_assign(name, value);
  } else {
    initialise();
    assign(steps_.variables().at(name), value);
  }
}

/// With several ranks, ignores values that were set before the first step. Rank 0 alone may have
/// them, but all ranks must compile the same startup step.
bool VariableValues::has_value(const std::string& name) const {
  return initialised_names_.contains(name) ||
         (deferred_values_.contains(name) && !steps_.options().passes.uses_collectives());
}

void VariableValues::register_variables(AddedSteps added) {
  initialised_names_.merge(std::move(added.zero_initialised));
  std::ranges::move(added.startup_steps, std::back_inserter(startup_steps_));
  weights_.add(added.weight_steps);
  if (added.has_new_variables) {
    half_weights_are_stale_ = true;
    initialised_ = false;
    needs_seed_ = !initialised_names_.contains(std::string(kRandomState)) &&
                  steps_.variables().find(kRandomState) != nullptr;
  }
  allocated_ = true;
  prepare_for_step();
}

void VariableValues::initialise() {
  if (!initialised_) {
    for (; !startup_steps_.empty(); startup_steps_.pop_back()) {
      prepare_for_step();
      in_flight_.run_without_outputs(*startup_steps_.back());
      for (const auto& op : startup_steps_.back()->runs().front().compiled->program->main().ops) {
        if (!is_store(*op)) continue;
        initialised_names_.insert(op->symbol);
        weights_.mark_stale(steps_.variables().at(op->symbol));
        assign_array(op->symbol);
      }
    }
    set_deferred_values();
    initialised_ = true;
    half_weights_are_stale_ = true;
    in_flight_.invalidate_batch_position();
  }
  prepare_for_step();
}

void VariableValues::set_deferred_values() {
  if (deferred_values_.empty()) return;
  for (const auto& [name, value] : deferred_values_)
    weights_.mark_stale(steps_.variables().at(name));
  weights_.map_cached(deferred_values_);
  while (!deferred_values_.empty()) {
    const auto& [name, value] = *deferred_values_.begin();
    const Variable& variable = steps_.variables().at(name);
    if (!weights_.is_mapped(variable)) set(variable, value);
    initialised_names_.insert(name);
    deferred_values_.erase(deferred_values_.begin());
  }
}

void VariableValues::assign_array(const std::string& name) {
  const ir::Op* declared = steps_.recorded_program().main().find("param", name);
  if (declared == nullptr) return;
  if (const auto values = initial_values(declared->results[0].type, declared->attrs)) {
    assign(steps_.variables().at(name), *values);
  }
}

void VariableValues::prepare_for_step() {
  if (needs_seed_) {
    const uint64_t seed = steps_.options().seed;
    steps_.memory().write(steps_.address_of(kRandomState), &seed, sizeof seed);
    initialised_names_.emplace(kRandomState);
    needs_seed_ = false;
  }
  if (!initialised_ || !half_weights_are_stale_) return;
  refresh_half_weights();
  half_weights_are_stale_ = false;
}

void VariableValues::refresh_half_weights(std::string_view parameter) {
  for (const Variable& copy : steps_.variables().all()) {
    const auto parameter_name = parameter_of_half_weight(copy.name);
    if (!parameter_name || copy.is_recorded() ||
        (!parameter.empty() && *parameter_name != parameter))
      continue;
    if (const Variable* master = steps_.variables().find(*parameter_name))
      assign(copy, value(*master));
  }
}

std::vector<Variable> VariableValues::initialised_variables() const {
  std::vector<Variable> filled;
  for (const Variable& v : steps_.variables().all()) {
    if (initialised_names_.contains(v.name)) filled.push_back(v);
  }
  std::ranges::sort(filled, {}, &Variable::name);
  return filled;
}

Tensor VariableValues::value(const Variable& variable) {
  in_flight_.wait_until_complete();
  std::byte* at = steps_.address_of(variable);
  const std::vector<int64_t> shape = extents(variable.type.shape, 1);
  if (steps_.memory().is_host_accessible()) return Tensor::view(variable.type.dtype, shape, at);
  Tensor copied(variable.type.dtype, shape);
  steps_.memory().read(copied.data(), at, copied.bytes());
  return copied;
}

void VariableValues::assign(const Variable& variable, const Tensor& value) {
  weights_.mark_stale(variable);
  set(variable, value);
}

/// Assigns a value, but does not mark the precomputed weights as stale.
void VariableValues::set(const Variable& variable, const Tensor& value) {
  const DType dtype = variable.type.dtype;
  const Tensor converted = value.dtype() == dtype ? value : value.cast(dtype);
  const bool stale_before = std::exchange(half_weights_are_stale_, true);
  copy_to_state(steps_.address_of(variable), converted.data(), converted.bytes());
  refresh_half_weights(variable.name);
  half_weights_are_stale_ = stale_before;
}

void VariableValues::write(std::byte* to, const void* from, int64_t bytes) {
  mark_variables_changed();
  copy_to_state(to, from, bytes);
}

void VariableValues::copy_to_state(std::byte* to, const void* from, int64_t bytes) {
  in_flight_.wait_until_complete();
  in_flight_.invalidate_batch_position();
  steps_.memory().write(to, from, bytes);
}

void VariableValues::broadcast(const Variable& variable) {
  in_flight_.wait_until_complete();
  in_flight_.invalidate_batch_position();
  mark_variables_changed();
  steps_.device().broadcast(steps_.address_of(variable), variable.type.bytes_at(1));
}

void VariableValues::save_control_variables(ControlValues& to) {
  in_flight_.wait_until_complete();
  for (const Variable& v : steps_.variables().all()) {
    if (v.kind != VariableKind::control) continue;
    auto saved = to.find(v.name);
    if (saved == to.end()) {
      saved = to.emplace(v.name, Tensor(v.type.dtype, extents(v.type.shape, 1))).first;
    }
    Tensor& copy = saved->second;
    steps_.memory().read(copy.data(), steps_.address_of(v), copy.bytes());
  }
}

void VariableValues::restore_control_variables(const ControlValues& controls) {
  for (const auto& [name, value] : controls) assign(steps_.variables().at(name), value);
}

}  // namespace fluid
