#include "executor/session/precomputed_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "codegen/object_cache.h"
#include "ops/source_kind.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

const CompiledProgram& program_of(const WeightStep& weights) {
  return *weights.step->runs().front().compiled;
}

}  // namespace

void PrecomputedWeights::add(const std::vector<WeightStep>& steps) {
  for (const WeightStep& step : steps) {
    Weights& added = weights_.emplace_back(Weights{.computed_by = step});
    for (const auto& op : program_of(step).program->main().ops) {
      if (is_variable(*op)) added.reads.insert(op->symbol);
    }
  }
}

void PrecomputedWeights::map_cached(const GivenValues& given) {
  for (Weights& weights : weights_) search(weights, given);
}

bool PrecomputedWeights::is_mapped(const Variable& variable) const {
  return std::ranges::any_of(weights_, [&](const Weights& w) {
    return w.mapped && w.computed_by.range.contains(variable.offset);
  });
}

void PrecomputedWeights::refresh() {
  for (Weights& weights : weights_) {
    search(weights, {});
    if (!weights.fresh) compute(weights);
  }
}

void PrecomputedWeights::mark_stale() {
  for (Weights& weights : weights_) mark_stale(weights);
}

void PrecomputedWeights::mark_stale(const Variable& variable) {
  for (Weights& weights : weights_) {
    if (weights.reads.contains(variable.name) ||
        weights.computed_by.range.contains(variable.offset)) {
      mark_stale(weights);
    }
  }
}

void PrecomputedWeights::mark_stale(Weights& weights) {
  if (weights.mapped) steps_.memory().detach_state_file(weights.computed_by.range.offset);
  weights.fresh = weights.mapped = false;
  weights.key.clear();
}

bool PrecomputedWeights::may_be_cached(const Weights& weights) const {
  return cache_.is_enabled() && weights.computed_by.range.bytes > 0 &&
         !program_of(weights.computed_by).values_key.empty() && !steps_.has_step_for(Mode::train);
}

void PrecomputedWeights::search(Weights& weights, const GivenValues& given) {
  if (weights.fresh || weights.searched || !may_be_cached(weights)) return;
  weights.searched = true;
  weights.key = key_of(weights, given);
  weights.fresh = map(weights);
}

/// Maps the entry `weights.key`. If there is one, clears the key.
bool PrecomputedWeights::map(Weights& weights) {
  const StateRange& range = weights.computed_by.range;
  auto file = cache_.open(weights.key, range.bytes, steps_.device().threads());
  weights.mapped = file != nullptr && steps_.memory().map_state(range, std::move(file));
  if (weights.mapped) weights.key.clear();
  return weights.mapped;
}

void PrecomputedWeights::compute(Weights& weights) {
  const StateRange& range = weights.computed_by.range;
  steps_.require_executable(*weights.computed_by.step, [&] { in_flight_.fetch_outputs(); });
  in_flight_.run_without_outputs(*weights.computed_by.step);
  weights.fresh = true;
  if (weights.key.empty()) return;
  cache_.store(weights.key,
               {steps_.memory().addresses().state + range.offset, static_cast<size_t>(range.bytes)},
               steps_.device().threads());
  map(weights);
  weights.key.clear();
}

/// Returns the dtype and the hash of the value that `variable` has or is given.
std::string PrecomputedWeights::text_of_value(const Variable& variable,
                                              const GivenValues& given) const {
  const auto value = given.find(variable.name);
  const bool is_given = value != given.end();
  const DType dtype = is_given ? value->second.dtype() : variable.type.dtype;
  const void* data = is_given ? value->second.data() : steps_.address_of(variable);
  const int64_t bytes = is_given ? value->second.bytes() : variable.type.bytes_at(1);
  return fmt::format("{} {}", name_of(dtype),
                     hash_of_values({static_cast<const std::byte*>(data), size_t(bytes)},
                                    steps_.device().threads()));
}

/// Returns the key of the cache entry: a hash of all that determines the values in the range. These
/// are the step's program, kernels and libraries, the place of each variable in the range, and the
/// values that the step reads.
std::string PrecomputedWeights::key_of(const Weights& weights, const GivenValues& given) const {
  const CompiledProgram& compiled = program_of(weights.computed_by);
  const StateRange& range = weights.computed_by.range;
  std::string text = fmt::format("{}\n{} bytes\n", compiled.values_key, range.bytes);
  for (const auto& op : compiled.program->main().ops) {
    if (!is_variable(*op) && !is_store(*op)) continue;
    const Variable& variable = steps_.variables().at(op->symbol);
    text += fmt::format("{} {}", variable.name, variable.type.str());
    if (range.contains(variable.offset))
      text += fmt::format(" at {}", variable.offset - range.offset);
    if (is_variable(*op)) text += " = " + text_of_value(variable, given);
    text += '\n';
  }
  return ObjectCache::hash_digits(text);
}

}  // namespace fluid
