#include <unistd.h>

#include <nlohmann/json.hpp>

#include "executor/cpu/cpu_target.h"

namespace fluid {
namespace {

using Json = nlohmann::ordered_json;

/// Calls `visit(name, field)` for every entry of a description.
template <class Description, class F>
void for_each_entry(Description& d, F&& visit) {
  visit("name", d.name);
  visit("threads", d.threads);
  visit("vector_bits", d.vector_bits);
  visit("l2_bytes", d.l2_bytes);
  visit("gflops_f32", d.gflops_f32);
  visit("memory_gbs", d.memory_gbs);
  visit("cache_gbs", d.cache_gbs);
  visit("bf16", d.bf16);
}

template <class T>
bool holds(const Json& value) {
  if constexpr (std::is_same_v<T, bool>) return value.is_boolean();
  if constexpr (std::is_same_v<T, std::string>) return value.is_string();
  if constexpr (std::is_same_v<T, double>) return value.is_number() && value.get<double>() > 0;
  return value.is_number_integer() && value.get<int64_t>() > 0 &&
         value.get<int64_t>() <= std::numeric_limits<int>::max();
}

}  // namespace

TargetDescription describe_host(int threads) {
  TargetDescription d;
  d.threads = threads;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) {
    d.vector_bits = 512;
  } else if (!__builtin_cpu_supports("avx2")) {
    d.vector_bits = 128;
  }
  d.bf16 = __builtin_cpu_supports("avx512bf16");
#endif
  // Two multiply-adds a cycle on each f32 lane, at a typical 1.8 GHz under full vector load.
  d.gflops_f32 = d.vector_bits / 32 * 4 * 1.8;
  if (const long l2 = sysconf(_SC_LEVEL2_CACHE_SIZE); l2 > 0) d.l2_bytes = l2;
  return d;
}

std::string to_json(const TargetDescription& description) {
  Json json = Json::object();
  for_each_entry(description, [&](const char* name, const auto& value) { json[name] = value; });
  return json.dump(2) + "\n";
}

TargetDescription target_from_json(const std::string& text, const std::string& file) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) throw UserError(file + ": not a JSON object that describes a target");
  TargetDescription d;
  std::vector<std::string> known = {kMachineEntry};
  for_each_entry(d, [&](const char* name, auto& value) {
    known.emplace_back(name);
    const auto entry = json.find(name);
    if (entry == json.end()) {
      throw UserError(file + ": the target's entry '" + name + "' is missing");
    }
    using T = std::remove_reference_t<decltype(value)>;
    if (!holds<T>(*entry)) {
      throw UserError(file + ": the target's entry '" + name + "' cannot be " + entry->dump());
    }
    value = entry->template get<T>();
  });
  for (const auto& entry : json.items()) {
    if (std::find(known.begin(), known.end(), entry.key()) == known.end()) {
      throw UserError(file + ": a target has no entry '" + entry.key() + "'" +
                      did_you_mean(entry.key(), known));
    }
  }
  return d;
}

}  // namespace fluid
