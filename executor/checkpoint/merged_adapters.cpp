#include "executor/checkpoint/merged_adapters.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ir/error.h"

namespace fluid {
namespace {

const Tensor* value_in(const LoadedParameters& loaded, const std::string& name) {
  using Value = std::pair<std::string, Tensor>;
  const auto found = std::ranges::find(loaded.values, name, &Value::first);
  return found == loaded.values.end() ? nullptr : &found->second;
}

}  // namespace

void MergedAdapters::load(const LoadedParameters& loaded, const std::vector<LoraAdapter>& adapters,
                          FunctionRef<Tensor(const std::string&)> current,
                          const std::string& path) {
  std::set<std::string> ids = loaded.keeps_weights() ? ids_ : std::set<std::string>();
  ids.insert(loaded.metadata.merged_adapters.begin(), loaded.metadata.merged_adapters.end());
  AdapterOrigins origins = origins_;
  for (const LoraAdapter& adapter : adapters) {
    const Tensor *a = value_in(loaded, adapter.a), *b = value_in(loaded, adapter.b);
    std::set<std::string>& known = origins[adapter.weight];
    if (a != nullptr && b != nullptr) {
      const auto of_file = loaded.metadata.adapter_origins.find(adapter.weight);
      known = of_file == loaded.metadata.adapter_origins.end() ? std::set<std::string>()
                                                               : of_file->second;
      known.insert(adapter_id(*a, *b, adapter.scale));
    } else if (!ids.empty()) {
      known.insert(adapter_id(current(adapter.a), current(adapter.b), adapter.scale));
    }
    known.erase(std::string(kNoAdapter));
    const auto is_merged = [&](const std::string& id) { return ids.contains(id); };
    if (std::ranges::none_of(known, is_merged)) continue;
    throw UserError(fmt::format(
        "{}: the adapters of '{}' are merged into the weights already: load the weights from "
        "before the merge, or no adapters",
        path, adapter.weight));
  }
  ids_ = std::move(ids);
  origins_ = std::move(origins);
}

}  // namespace fluid
