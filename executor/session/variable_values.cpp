#include "executor/session/variable_values.h"

#include <algorithm>
#include <utility>

#include "ops/source_kind.h"
#include "passes/half_weights.h"
#include "passes/rewrite.h"

namespace fluid {

void VariableValues::give(const std::string& name, const Tensor& value) {
  if (!exist_) {
    given_.insert_or_assign(name, value);
  } else {
    initialise();
    assign(steps_.variables().named(name), value);
  }
}

/// With several ranks, only rank 0 may have loaded values, so all ranks compile the same startup
/// step.
bool VariableValues::has_value(const std::string& name) const {
  return filled_.contains(name) || (given_.contains(name) && !steps_.options().passes.exchanges());
}

void VariableValues::register_variables(AddedSteps added) {
  filled_.merge(std::move(added.zeros));
  std::ranges::move(added.fillers, std::back_inserter(fillers_));
  if (added.new_variables) {
    half_weights_stale_ = true;
    initialised_ = false;
    seed_is_due_ = !filled_.contains(std::string(kRandomState)) &&
                   steps_.variables().find(kRandomState) != nullptr;
  }
  exist_ = true;
  complete();
}

void VariableValues::initialise() {
  if (!initialised_) {
    for (; !fillers_.empty(); fillers_.pop_back()) {
      complete();
      in_flight_.run(*fillers_.back(), Batch());
      in_flight_.wait_until_complete();
      for (const auto& op : fillers_.back()->runs().front().part->program->main().ops) {
        if (is_store(*op)) filled_.insert(op->symbol);
      }
    }
    while (!given_.empty()) {
      const auto& [name, value] = *given_.begin();
      assign(steps_.variables().named(name), value);
      filled_.insert(name);
      given_.erase(given_.begin());
    }
    initialised_ = true;
    half_weights_stale_ = true;
    in_flight_.invalidate_batch_position();
  }
  complete();
}

void VariableValues::complete() {
  if (seed_is_due_) {
    const uint64_t seed = steps_.options().seed;
    steps_.memory().write(steps_.address_of(kRandomState), &seed, sizeof seed);
    filled_.emplace(kRandomState);
    seed_is_due_ = false;
  }
  if (!initialised_ || !half_weights_stale_) return;
  refresh_half_weights();
  half_weights_stale_ = false;
}

void VariableValues::refresh_half_weights(std::string_view parameter) {
  for (const Variable& copy : steps_.variables().all()) {
    const auto of = copied_parameter(copy.name);
    if (!of || copy.saved() || (!parameter.empty() && *of != parameter)) continue;
    if (const Variable* master = steps_.variables().find(*of)) assign(copy, value(*master));
  }
}

std::vector<Variable> VariableValues::initialised() const {
  std::vector<Variable> filled;
  for (const Variable& v : steps_.variables().all()) {
    if (filled_.contains(v.name)) filled.push_back(v);
  }
  std::ranges::sort(filled, {}, &Variable::name);
  return filled;
}

Tensor VariableValues::value(const Variable& variable) {
  in_flight_.wait_until_complete();
  std::byte* at = steps_.address_of(variable);
  const std::vector<int64_t> shape = extents(variable.type.shape, 1);
  if (steps_.memory().is_host()) return Tensor::view(variable.type.dtype, shape, at);
  Tensor copied(variable.type.dtype, shape);
  steps_.memory().read(copied.data(), at, copied.bytes());
  return copied;
}

void VariableValues::assign(const Variable& variable, const Tensor& value) {
  const DType dtype = variable.type.dtype;
  const Tensor converted = value.dtype() == dtype ? value : value.cast(dtype);
  const bool were_stale = std::exchange(half_weights_stale_, true);
  write(steps_.address_of(variable), converted.data(), converted.bytes());
  refresh_half_weights(variable.name);
  half_weights_stale_ = were_stale;
}

void VariableValues::write(std::byte* to, const void* from, int64_t bytes) {
  in_flight_.wait_until_complete();
  in_flight_.invalidate_batch_position();
  steps_.memory().write(to, from, bytes);
}

void VariableValues::broadcast(const Variable& variable) {
  in_flight_.wait_until_complete();
  in_flight_.invalidate_batch_position();
  steps_.device().broadcast(steps_.address_of(variable), variable.type.bytes_at(1));
}

void VariableValues::copy_controls(Controls& to) {
  in_flight_.wait_until_complete();
  for (const Variable& v : steps_.variables().all()) {
    if (v.kind != VariableKind::control) continue;
    auto kept = to.find(v.name);
    if (kept == to.end()) {
      kept = to.emplace(v.name, Tensor(v.type.dtype, extents(v.type.shape, 1))).first;
    }
    Tensor& copy = kept->second;
    steps_.memory().read(copy.data(), steps_.address_of(v), copy.bytes());
  }
}

void VariableValues::restore(const Controls& controls) {
  for (const auto& [name, value] : controls) assign(steps_.variables().named(name), value);
}

}  // namespace fluid
