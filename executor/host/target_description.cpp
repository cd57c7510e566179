#include "executor/host/target_description.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <ranges>

#include "executor/device/description_reader.h"
#include "executor/host/host_cpu.h"
#include "executor/host/peak_loops.h"

namespace fluid {
namespace {

// Assumed clock rate and copy bandwidths of a core.
constexpr double kAssumedGhz = 1.8;
constexpr double kAssumedCacheGbs = 60, kAssumedMemoryGbs = 12;

/// Calls `visit(name, field)` for each field of a description.
template <class Description, class F>
void for_each_entry(Description& d, F&& visit) {
  visit("name", d.name);
  visit("cpu", d.cpu);
  visit("threads", d.threads);
  visit("cores", d.cores);
  visit("measured", d.measured);
  visit("vector_bits", d.vector_bits);
  visit("l1_bytes", d.l1_bytes);
  visit("l2_bytes", d.l2_bytes);
  visit("l3_bytes", d.l3_bytes);
  visit("gops", d.gops);
  visit("gbs", d.gbs);
}

/// Total rate of `threads` threads, in operations/s or bytes/s.
double rate_of(const CoreRates& rates, int threads) {
  return 1e9 * std::min(rates.one * threads, rates.all);
}

/// Peak operations/s in `dtype` over all instruction sets; 0 if `gops` has no entry for `dtype`.
double peak_ops_per_second(const TargetDescription& cpu, DType dtype) {
  const std::string prefix = std::string(name_of(dtype)) + "_";
  double rate = 0;
  for (const auto& [name, rates] : cpu.gops) {
    if (name.starts_with(prefix)) rate = std::max(rate, rate_of(rates, cpu.threads));
  }
  return rate;
}

/// Bytes of CPU 0's data cache at level 1, 2 or 3; `fallback` if unknown. Reads sysfs, because
/// sysconf() reports eight times the L3 cache of some CPUs.
int64_t cache_bytes(int level, int64_t fallback) {
  for (int index = 0; index < 8; ++index) {
    const std::string cache =
        "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/";
    std::string type, unit;
    int64_t found = 0, size = 0;
    std::ifstream(cache + "type") >> type;
    std::ifstream(cache + "level") >> found;
    std::ifstream(cache + "size") >> size >> unit;  // such as 512K
    if (found == level && type != "Instruction" && size > 0 && unit == "K") return size << 10;
  }
  return fallback;
}

/// Describes this machine's CPU. Sets CoreRates::one, but not CoreRates::all.
TargetDescription describe_one_thread() {
  TargetDescription d;
  d.cpu = host_cpu().model();
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) {
    d.vector_bits = 512;
  } else if (!__builtin_cpu_supports("avx2")) {
    d.vector_bits = 128;
  }
#endif
  d.gops.clear();
  for (const PeakLoop& loop : peak_loops())
    d.gops[loop.name].one = loop.ops_per_cycle * kAssumedGhz;
  // Assume two vector multiply-adds per cycle.
  if (d.gops.empty()) d.gops["f32_vector"].one = d.vector_bits / 32 * 4 * kAssumedGhz;
  for (const char* level : {"l1", "l2"}) d.gbs[level].one = kAssumedCacheGbs;
  for (const char* level : {"l3", "memory"}) d.gbs[level].one = kAssumedMemoryGbs;
  d.l1_bytes = cache_bytes(1, d.l1_bytes);
  d.l2_bytes = cache_bytes(2, d.l2_bytes);
  d.l3_bytes = cache_bytes(3, d.l2_bytes);
  return d;
}

}  // namespace

TargetDescription TargetDescription::with_threads(int count) const {
  TargetDescription copy = *this;
  copy.threads = count;
  return copy;
}

double TargetDescription::ops_per_second(DType dtype) const {
  const double f32_rate = peak_ops_per_second(*this, DType::f32);
  if (dtype == DType::f64) return f32_rate / 2;
  const double rate = peak_ops_per_second(*this, dtype);
  return rate > 0 ? rate : f32_rate;
}

std::string_view TargetDescription::memory_level(double bytes) const {
  if (bytes < static_cast<double>(l1_bytes) * threads) return "l1";
  if (bytes < static_cast<double>(l2_bytes) * threads) return "l2";
  return bytes < static_cast<double>(l3_bytes) ? "l3" : "memory";
}

double TargetDescription::bytes_per_second(double bytes) const {
  const auto rates = gbs.find(std::string(memory_level(bytes)));
  return rate_of(rates != gbs.end() ? rates->second : gbs.at("memory"), threads);
}

bool TargetDescription::has_same_isa(const TargetDescription& other) const {
  return vector_bits == other.vector_bits &&
         std::ranges::equal(std::views::keys(gops), std::views::keys(other.gops));
}

TargetDescription describe_host(int threads) {
  static const TargetDescription one_thread = describe_one_thread();
  TargetDescription d = one_thread;
  d.threads = d.cores = threads;
  for (auto* rates : {&d.gops, &d.gbs}) {
    for (auto& [name, rate] : *rates) rate.all = rate.one * threads;
  }
  return d;
}

std::string to_json(const TargetDescription& description) {
  auto json = nlohmann::ordered_json::object();
  const auto add = [&](const char* name, const auto& value) {
    if constexpr (requires { value.at("memory").one; }) {
      json[name] = nlohmann::ordered_json::object();
      for (const auto& [key, rates] : value) json[name][key] = {rates.one, rates.all};
    } else {
      json[name] = value;
    }
  };
  for_each_entry(description, add);
  return json.dump(2) + "\n";
}

TargetDescription target_from_json(const std::string& text, const std::string& file) {
  TargetDescription d;
  DescriptionReader reader(text, file, "target");
  const auto read = [&](const char* name, auto& value) {
    if constexpr (requires { value.at("memory").one; }) {
      DescriptionReader::Pairs pairs;
      reader.read(name, pairs);
      value.clear();
      for (const auto& [key, pair] : pairs) value[key] = {pair[0], pair[1]};
    } else {
      reader.read(name, value);
    }
  };
  for_each_entry(d, read);
  reader.reject_unknown_entries({kMachineEntry});
  if (peak_ops_per_second(d, DType::f32) == 0) reader.reject("gops", "it has no rate in f32");
  if (!d.gbs.contains("memory")) reader.reject("gbs", "it has no rate of 'memory'");
  return d;
}

}  // namespace fluid
