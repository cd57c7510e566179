#include "executor/checkpoint/merged_adapters.h"

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

std::string MergedAdapters::add_origin(const LoraAdapter& adapter, const Tensor& a,
                                       const Tensor& b) {
  return *origins_[adapter.weight].insert(adapter_id(a, b, adapter.scale)).first;
}

void MergedAdapters::load(const LoadedParameters& loaded, const std::vector<LoraAdapter>& adapters,
                          FunctionRef<Tensor(const std::string&)> current,
                          const std::string& path) {
  std::set<std::string> ids = loaded.keeps_weights() ? ids_ : std::set<std::string>();
  ids.insert(loaded.merged_adapters.begin(), loaded.merged_adapters.end());
  std::map<std::string, std::set<std::string>> origins = origins_;
  for (const LoraAdapter& adapter : adapters) {
    const Tensor *a = value_in(loaded, adapter.a), *b = value_in(loaded, adapter.b);
    std::set<std::string>& of_adapter = origins[adapter.weight];
    if (a != nullptr && b != nullptr) {
      of_adapter = {adapter_id(*a, *b, adapter.scale)};
    } else if (!ids.empty()) {
      of_adapter.insert(adapter_id(current(adapter.a), current(adapter.b), adapter.scale));
    }
    const auto is_merged = [&](const std::string& id) { return ids.contains(id); };
    if (std::ranges::none_of(of_adapter, is_merged)) continue;
    throw UserError(fmt::format(
        "{}: the adapters of '{}' are merged into the weights already: load the weights from "
        "before the merge, or no adapters",
        path, adapter.weight));
  }
  ids_ = std::move(ids);
  origins_ = std::move(origins);
}

}  // namespace fluid
