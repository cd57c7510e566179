#include "executor/checkpoint/applied_adapters.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <xxhash.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "ir/error.h"

namespace fluid {
namespace {

uint64_t hash_of_values(const Tensor& tensor, uint64_t seed) {
  const Tensor values = tensor.cast(f32);
  return XXH3_64bits_withSeed(values.data(), static_cast<size_t>(values.bytes()), seed);
}

const Tensor* value_in(const LoadedParameters& loaded, const std::string& name) {
  using Value = std::pair<std::string, Tensor>;
  const auto found = std::ranges::find(loaded.values, name, &Value::first);
  return found == loaded.values.end() ? nullptr : &found->second;
}

}  // namespace

std::string adapter_id(const Tensor& a, const Tensor& b, double scale) {
  const uint64_t factors = hash_of_values(b, hash_of_values(a, 0));
  return fmt::format("{:016x}", XXH3_64bits_withSeed(&scale, sizeof scale, factors));
}

std::string adapter_ids_text(const std::set<std::string>& ids) {
  return fmt::format("{}", fmt::join(ids, " "));
}

std::set<std::string> parse_adapter_ids(const std::string& text) {
  std::istringstream words(text);
  std::set<std::string> ids;
  for (std::string id; words >> id;) ids.insert(id);
  return ids;
}

void AppliedAdapters::load(const LoadedParameters& loaded, const std::vector<LoraAdapter>& adapters,
                           const std::string& path) {
  std::set<std::string> merged = loaded.keeps_weights ? merged_ : std::set<std::string>();
  merged.insert(loaded.merged_adapters.begin(), loaded.merged_adapters.end());
  std::map<std::string, std::string> applied = loaded_;
  for (const LoraAdapter& adapter : adapters) {
    const Tensor* a = value_in(loaded, adapter.a);
    const Tensor* b = value_in(loaded, adapter.b);
    if (a != nullptr && b != nullptr) applied[adapter.weight] = adapter_id(*a, *b, adapter.scale);
  }
  for (const auto& [weight, id] : applied) {
    if (!merged.contains(id)) continue;
    throw UserError(fmt::format(
        "{}: the adapters of '{}' are merged into the weights already: load the weights from "
        "before the merge, or no adapters",
        path, weight));
  }
  merged_ = std::move(merged);
  loaded_ = std::move(applied);
}

}  // namespace fluid
