#include "executor/host/host_cpu.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string_view>

namespace fluid {
namespace {

constexpr std::array<std::string_view, 18> kFeatures = {
    "sse4_2",   "avx2",     "fma",      "f16c",        "avx_vnni",    "avx512f",
    "avx512vl", "avx512bw", "avx512dq", "avx512_vnni", "avx512_bf16", "avx512_fp16",
    "amx_tile", "amx_bf16", "amx_fp16", "amx_int8",    "asimd",       "sve"};

std::vector<std::string> features_in(const std::string& flags) {
  std::istringstream words(flags);
  const std::set<std::string> all{std::istream_iterator<std::string>(words), {}};
  std::vector<std::string> features;
  for (const std::string_view feature : kFeatures) {
    if (all.contains(std::string(feature))) features.emplace_back(feature);
  }
  return features;
}

}  // namespace

std::string HostCpu::model() const {
  if (name.empty() && generation.empty()) return "unknown";
  return name + (name.empty() || generation.empty() ? "" : ", ") + generation;
}

HostCpu parse_cpuinfo(const std::string& cpuinfo) {
  HostCpu cpu;
  std::string package, family;
  std::set<std::pair<std::string, std::string>> cores;
  std::istringstream lines(cpuinfo);
  for (std::string line; std::getline(lines, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string key = line.substr(0, line.find_first_of("\t:"));
    const std::string value = line.substr(std::min(colon + 2, line.size()));
    if (key == "model name") cpu.name = value;
    if (key == "cpu family") family = value;
    if (key == "model") cpu.generation = "family " + family + ", model " + value;
    if (key == "physical id") package = value;
    if (key == "core id") cores.emplace(package, value);
    if (key == "flags" || key == "Features") cpu.features = features_in(value);
  }
  cpu.cores = static_cast<int>(cores.size());
  return cpu;
}

HostCpu host_cpu() {
  std::ostringstream text;
  text << std::ifstream("/proc/cpuinfo").rdbuf();
  return parse_cpuinfo(text.str());
}

}  // namespace fluid
