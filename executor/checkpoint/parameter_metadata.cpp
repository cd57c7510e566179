#include "executor/checkpoint/parameter_metadata.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "frontend/lora.h"

namespace fluid {
namespace {

/// Lists the LoRA adapters merged into the weights: the results of adapter_id(), separated by
/// spaces.
constexpr const char* kMergedAdaptersMetadata = "fluid.lora.merged";
/// Lists what LoRA adapters were trained on from: "fc0.w=ID;fc0.w=ID;fc1.w=ID".
constexpr const char* kAdapterOriginsMetadata = "fluid.lora.origins";

std::set<std::string> parse_ids(const std::string& text) {
  std::istringstream words(text);
  std::set<std::string> ids;
  for (std::string id; words >> id;) ids.insert(id);
  return ids;
}

std::string origins_text(const AdapterOrigins& origins) {
  std::string text;
  for (const auto& [weight, ids] : origins) {
    for (const std::string& id : ids) text += (text.empty() ? "" : ";") + weight + "=" + id;
  }
  return text;
}

AdapterOrigins parse_origins(const std::string& text) {
  AdapterOrigins origins;
  std::istringstream items(text);
  for (std::string item; std::getline(items, item, ';');) {
    const size_t equals = std::min(item.rfind('='), item.size());
    origins[item.substr(0, equals)].insert(item.substr(std::min(equals + 1, item.size())));
  }
  return origins;
}

}  // namespace

std::map<std::string, std::string> ParameterMetadata::entries() const {
  std::map<std::string, std::string> entries = lora;
  if (column_table != nullptr) entries.emplace(kColumnTableMetadata, column_table->to_json());
  if (!merged_adapters.empty()) {
    entries.emplace(kMergedAdaptersMetadata, fmt::format("{}", fmt::join(merged_adapters, " ")));
  }
  const std::string origins = origins_text(adapter_origins);
  if (!origins.empty()) entries.emplace(kAdapterOriginsMetadata, origins);
  return entries;
}

ParameterMetadata ParameterMetadata::parse(const std::map<std::string, std::string>& entries,
                                           const std::string& file) {
  ParameterMetadata metadata;
  for (const auto& [name, text] : entries) {
    if (name == kColumnTableMetadata) {
      metadata.column_table =
          std::make_shared<const ColumnTable>(ColumnTable::from_json(text, file));
    } else if (name == kMergedAdaptersMetadata) {
      metadata.merged_adapters = parse_ids(text);
    } else if (name == kAdapterOriginsMetadata) {
      metadata.adapter_origins = parse_origins(text);
    } else if (name == kLoraMetadata || name == kTrainedWithLoraMetadata) {
      metadata.lora.emplace(name, text);
    }
  }
  return metadata;
}

}  // namespace fluid
