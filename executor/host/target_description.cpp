#include "executor/host/target_description.h"

#include <unistd.h>

#include <nlohmann/json.hpp>

#include "executor/device/description_reader.h"

namespace fluid {
namespace {

/// Calls `visit(name, field)` for each field of a description.
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
  // Assume two multiply-adds per cycle in each f32 lane of a vector. Assume a clock rate of 1.8
  // GHz, which is typical under full vector load.
  d.gflops_f32 = d.vector_bits / 32 * 4 * 1.8;
  if (const long l2 = sysconf(_SC_LEVEL2_CACHE_SIZE); l2 > 0) d.l2_bytes = l2;
  return d;
}

std::string to_json(const TargetDescription& description) {
  auto json = nlohmann::ordered_json::object();
  for_each_entry(description, [&](const char* name, const auto& value) { json[name] = value; });
  return json.dump(2) + "\n";
}

TargetDescription target_from_json(const std::string& text, const std::string& file) {
  TargetDescription d;
  DescriptionReader reader(text, file, "target");
  for_each_entry(d, [&](const char* name, auto& value) { reader.read(name, value); });
  reader.reject_unknown_entries({kMachineEntry});
  return d;
}

}  // namespace fluid
