#include "executor/gpu_driver/gpu_description.h"

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "executor/device/description_reader.h"
#include "executor/gpu_driver/backend.h"
#include "executor/host/target_description.h"
#include "ir/error.h"

namespace fluid {
namespace {

constexpr const char* kCapability = "compute_capability";

/// Calls `visit(key, field)` for each field that some drivers do not report: the clock rates and
/// the width of the memory bus. The cost model derives peak rates from these fields.
template <class Description, class F>
void for_each_rate(Description& d, F&& visit) {
  visit("memory_bus_bits", d.memory_bus_bits);
  visit("clock_khz", d.clock_khz);
  visit("memory_clock_khz", d.memory_clock_khz);
}

}  // namespace

std::string to_json(const FluidGpuDescription& gpu) {
  nlohmann::ordered_json json = {{"name", gpu.name},
                                 {"memory", gpu.memory},
                                 {"free_memory", gpu.free_memory},
                                 {kCapability, fmt::format("{}.{}", gpu.major, gpu.minor)},
                                 {"multiprocessors", gpu.multiprocessors}};
  for_each_rate(gpu, [&](const char* name, auto value) {
    if (value > 0) json[name] = value;
  });
  return json.dump();
}

FluidGpuDescription gpu_from_json(const std::string& text, const std::string& file, int device) {
  DescriptionReader reader(text, file, "GPU", fmt::format("/{}/gpus/{}", kMachineEntry, device),
                           fmt::format("describes no cuda:{}", device));
  if (reader.has(kGpuProblem)) {
    std::string problem;
    reader.read(kGpuProblem, problem);
    throw UserError(fmt::format("{}: cuda:{}: {}", file, device, problem));
  }
  FluidGpuDescription gpu = {};
  std::string name, capability;
  reader.read("name", name);
  reader.read(kCapability, capability);
  reader.read("memory", gpu.memory);
  reader.read("multiprocessors", gpu.multiprocessors);
  for_each_rate(gpu, [&](const char* rate, auto& value) {
    if (reader.has(rate)) reader.read(rate, value);
  });
  std::snprintf(gpu.name, sizeof gpu.name, "%s", name.c_str());
  int length = 0;
  std::sscanf(capability.c_str(), "%2d.%1d%n", &gpu.major, &gpu.minor, &length);
  if (length == 0 || length != std::ssize(capability)) {
    throw UserError(fmt::format("{}: invalid compute capability '{}'", file, capability));
  }
  return gpu;
}

std::optional<int> first_supported_gpu(const std::string& text, const std::string& file) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  const nlohmann::json::json_pointer at(fmt::format("/{}/gpus", kMachineEntry));
  if (!json.is_object() || !json.contains(at) || !json.at(at).is_array()) return std::nullopt;
  const auto& gpus = json.at(at);
  for (size_t i = 0; i < gpus.size(); ++i) {
    const auto device = static_cast<int>(i);
    const bool has_problem = gpus[i].is_object() && gpus[i].contains(kGpuProblem);
    if (!has_problem && unsupported_reason(gpu_from_json(text, file, device)).empty())
      return device;
  }
  return std::nullopt;
}

}  // namespace fluid
