#include "executor/checkpoint/adapter_ids.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <xxhash.h>

#include <algorithm>
#include <sstream>

namespace fluid {
namespace {

uint64_t hash_of_values(const Tensor& tensor, uint64_t seed) {
  const Tensor values = tensor.cast(f32);
  return XXH3_64bits_withSeed(values.data(), static_cast<size_t>(values.bytes()), seed);
}

bool is_zero(const Tensor& tensor) {
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    if (tensor.at(i) != 0) return false;
  }
  return true;
}

}  // namespace

std::string adapter_id(const Tensor& a, const Tensor& b, double scale) {
  if (is_zero(b)) return std::string(kNoAdapter);
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

std::string adapter_origins_text(const AdapterOrigins& origins) {
  std::string text;
  for (const auto& [weight, ids] : origins) {
    for (const std::string& id : ids) text += (text.empty() ? "" : ";") + weight + "=" + id;
  }
  return text;
}

AdapterOrigins parse_adapter_origins(const std::string& text) {
  AdapterOrigins origins;
  std::istringstream items(text);
  for (std::string item; std::getline(items, item, ';');) {
    const size_t equals = std::min(item.rfind('='), item.size());
    origins[item.substr(0, equals)].insert(item.substr(std::min(equals + 1, item.size())));
  }
  return origins;
}

}  // namespace fluid
