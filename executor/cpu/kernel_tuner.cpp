#include "executor/cpu/kernel_tuner.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <ranges>
#include <string_view>
#include <tuple>

#include "codegen/backend.h"
#include "executor/cpu_libraries/library.h"
#include "executor/device/op_cost.h"
#include "executor/device/out_of_memory.h"
#include "executor/device/random_bytes.h"
#include "executor/host/arena.h"
#include "executor/host/directory_lock.h"
#include "executor/host/parallel.h"
#include "ir/print.h"
#include "ir/stopwatch.h"
#include "ops/loops.h"
#include "ops/quantization/quantization.h"
#include "ops/table.h"

namespace fluid {
namespace {

constexpr double kMinFlops = 4e6;  // an op of fewer FLOPs takes less than about 0.1 ms
constexpr double kTie = 1.03;      // times within this factor count as equal
constexpr double kFarSlower = 4;   // predicted factor from which generated code is not timed

constexpr std::string_view kKeyPrefix = "kernels ";
constexpr const char* kGenerated = "generated";
constexpr double kFailed = std::numeric_limits<double>::infinity();
// A part of the key of an entry. Raise it when Fluid's own kernels change, or how they are timed.
constexpr int kTrialVersion = 2;

/// Names the kernel of `candidate`, with the layouts that it requires: "onednn.conv2d plain nhwc ->
/// nhwc".
std::string label_of(const KernelCandidate& candidate) {
  const auto text = [](const std::optional<Layout>& layout) {
    return layout ? layout->str() : "plain";
  };
  std::string label = candidate.kernel;
  for (const auto& layout : candidate.operands) label += " " + text(layout);
  return label + " -> " + text(candidate.results.at(0));
}

KernelTrial::Chain chain_of(const KernelTimes& kernels) {
  KernelTrial::Chain chain = {&kernels.op};
  chain.insert(chain.end(), kernels.epilogue.begin(), kernels.epilogue.end());
  return chain;
}

/// Describes the chain: names, attributes and types.
std::string text_of(const KernelTrial::Chain& chain) {
  std::string text;
  for (const ir::Op* op : chain) {
    text += (text.empty() ? "" : "; ") + op->name;
    for (const auto& [name, attr] : op->attrs) text += " " + name + "=" + ir::print(attr);
    for (const Value& v : op->operands) {
      const bool chained = op != chain.front() && std::ranges::count(chain, v.op()) > 0;
      text += chained ? " _" : " " + v.type().str();
    }
    text += " -> " + op->results.at(0).type.str();
  }
  return text;
}

/// Whether the operands may be random, and the op takes long enough.
bool is_timed(const ir::Op& op) {
  const auto may_be_random = [](const Value& v) {
    const DType dtype = v.type().dtype;
    return is_float(dtype) || is_8bit_integer(dtype);
  };
  return std::ranges::all_of(op.operands, may_be_random) && cost_of(op, 1).flops >= kMinFlops;
}

/// Parses an entry of the record. The time of a kernel that failed is infinite.
std::map<std::string, double> parse(const std::string& entry) {
  try {
    std::map<std::string, double> seconds;
    const auto json = nlohmann::json::parse(entry);
    for (const auto& [kernel, time] : json.at("seconds").items()) {
      seconds[kernel] = time.is_null() ? kFailed : time.get<double>();
    }
    return seconds;
  } catch (const nlohmann::json::exception&) {
    throw UserError("the tuning record has a malformed entry of kernel times: " + entry);
  }
}

/// Rounds to three significant digits.
double rounded(double seconds) { return std::stod(fmt::format("{:.2e}", seconds)); }

/// Position of the kernel in the list of the definition of `op`.
ptrdiff_t position_of(const ir::Op& op, const KernelCandidate& candidate) {
  const auto& kernels = *def_of(op).kernels;
  return std::ranges::find(kernels, candidate.kernel, &LibraryKernel::name) - kernels.begin();
}

/// Binds the kernel to `memory`. Returns false if the library fails.
bool bind(KernelTrial& trial, const Arena& memory) {
  try {
    trial.bind(memory.data());
    return true;
  } catch (const OutOfMemory&) {
    throw;
  } catch (const DeviceError&) {
    return false;
  }
}

}  // namespace

KernelTuner::KernelTuner(const TargetDescription& cpu, Settings settings)
    : cpu_(cpu),
      settings_(std::move(settings)),
      cache_(settings_.cache_dir, CompilerOptions().cache_limit),
      kernels_(cpu_accumulators(cpu.vector_bits)) {
  for (const auto& [key, entry] : settings_.record) {
    if (!key.starts_with(kKeyPrefix)) continue;
    parse(entry);
    entries_.emplace(key, entry);
  }
}

KernelTimes KernelTuner::measured(KernelTimes kernels) {
  std::vector<KernelCandidate>& libraries = kernels.libraries;
  if (libraries.empty() || !is_timed(kernels.op)) return kernels;
  const std::optional<Seconds> seconds = seconds_of(kernels);
  if (!seconds) return kernels;
  const auto is_unknown = [&](const KernelCandidate& c) {
    const auto known = seconds->find(label_of(c));
    return known == seconds->end() || known->second == kFailed;
  };
  std::erase_if(libraries, is_unknown);
  for (KernelCandidate& candidate : libraries) {
    candidate.seconds = seconds->at(label_of(candidate));
    candidate.measured = true;
  }
  std::ranges::sort(libraries, {}, &KernelCandidate::seconds);
  // A group of equal times starts at the fastest kernel that the previous group does not contain,
  // because passes may reject all kernels of a group.
  double first = 0;
  std::vector<double> distinct;
  for (KernelCandidate& candidate : libraries) {
    if (candidate.seconds > kTie * first) distinct.push_back(first = candidate.seconds);
    candidate.seconds = first;
  }
  std::ranges::sort(libraries, {}, [&](const KernelCandidate& c) {
    return std::tuple(c.seconds, position_of(kernels.op, c), label_of(c));
  });
  if (const auto generated = seconds->find(kGenerated); generated != seconds->end()) {
    kernels.generated = generated->second;
    for (const double library : distinct) {
      const bool equal = kernels.generated < kTie * library && library < kTie * kernels.generated;
      if (equal) kernels.generated = kTie * library;
    }
  }
  return kernels;
}

/// Returns the times of the kernels; nullopt if they are not timed.
std::optional<KernelTuner::Seconds> KernelTuner::seconds_of(const KernelTimes& kernels) {
  const std::string digits = ObjectCache::hash_digits(
      fmt::format("{}\n{}, {}, {} threads\n{}, {}, {}", text_of(chain_of(kernels)), cpu_.cpu,
                  fmt::join(std::views::keys(cpu_.gops), " "), cpu_.threads,
                  emit::code_generator_version(), library_version(), kTrialVersion));
  const std::string key = std::string(kKeyPrefix) + digits;
  const std::scoped_lock lock(mutex_);
  if (const auto known = entries_.find(key); known != entries_.end()) return parse(known->second);
  if (!settings_.measures || not_timed_.contains(key)) return std::nullopt;
  std::optional<std::string> entry = cached_or_measured("k" + digits, kernels);
  if (!entry) {
    not_timed_.insert(key);
    return std::nullopt;
  }
  if (settings_.communicator != nullptr) entry = settings_.communicator->propose(key, *entry);
  entries_[key] = *entry;
  return parse(*entry);
}

/// Holds the lock of the cache while it times the op. So only one of the processes that share the
/// cache times it.
std::optional<std::string> KernelTuner::cached_or_measured(const std::string& key,
                                                           const KernelTimes& kernels) {
  if (auto cached = cache_.find(key)) return cached;
  std::optional<DirectoryLock> lock;
  if (!settings_.cache_dir.empty()) lock.emplace(settings_.cache_dir);
  if (auto cached = cache_.find(key)) return cached;
  std::optional<std::string> entry = measure(kernels);
  if (entry) cache_.store(key, *entry);
  return entry;
}

std::vector<KernelTuner::NamedTrial> KernelTuner::trials_of(const KernelTimes& kernels) {
  const KernelTrial::Chain chain = chain_of(kernels);
  std::vector<NamedTrial> trials;
  for (const KernelCandidate& candidate : kernels.libraries) {
    if (!kernels.epilogue.empty() && !candidate.accepts_layouts(kernels.op, *chain.back()))
      continue;
    trials.push_back({.label = label_of(candidate)});
    try {
      trials.back().trial = std::make_unique<KernelTrial>(chain, candidate, cpu_.threads);
    } catch (const OutOfMemory&) {
      throw;
    } catch (const DeviceError&) {
      // The library cannot prepare this kernel.
    }
  }
  const double best = std::ranges::min(kernels.libraries, {}, &KernelCandidate::seconds).seconds;
  if (!kernels.epilogue.empty() || kernels.generated > kFarSlower * best) return trials;
  if (!compiler_) {
    compiler_.emplace(CompilerOptions{.cache_dir = settings_.cache_dir, .threads = cpu_.threads});
  }
  trials.push_back(
      {.label = kGenerated,
       .trial = std::make_unique<KernelTrial>(chain, kernels_, *compiler_, cpu_.threads)});
  return trials;
}

/// Times the kernels. Returns nullopt if there is too little memory, which may not be so in a later
/// run.
std::optional<std::string> KernelTuner::measure(const KernelTimes& kernels) {
  const Stopwatch watch;
  start_pool(cpu_.threads);
  auto seconds = nlohmann::ordered_json::object();
  try {
    std::vector<NamedTrial> named = trials_of(kernels);
    int64_t bytes = 0;
    for (const NamedTrial& each : named) {
      seconds[each.label] = nullptr;
      if (each.trial) bytes = std::max(bytes, each.trial->bytes());
    }
    const Arena memory(bytes);
    fill_with_random_floats({memory.data(), static_cast<size_t>(bytes)});
    std::vector<std::string> labels;
    std::vector<std::unique_ptr<KernelTrial>> trials;
    for (NamedTrial& each : named) {
      if (!each.trial || !bind(*each.trial, memory)) continue;
      labels.push_back(each.label);
      trials.push_back(std::move(each.trial));
    }
    const std::vector<double> shortest = shortest_seconds(trials);
    for (size_t i = 0; i < labels.size(); ++i) {
      if (shortest[i] != kFailed) seconds[labels[i]] = rounded(shortest[i]);
    }
  } catch (const OutOfMemory&) {
    return std::nullopt;
  }
  ++timed_ops_;
  ms_ += watch.ms();
  return nlohmann::ordered_json{{"op", text_of(chain_of(kernels))}, {"seconds", seconds}}.dump();
}

bool has_kernel_times(const std::map<std::string, std::string>& record) {
  const auto first = record.lower_bound(std::string(kKeyPrefix));
  return first != record.end() && first->first.starts_with(kKeyPrefix);
}

std::map<std::string, std::string> KernelTuner::record() const {
  const std::scoped_lock lock(mutex_);
  return entries_;
}

int KernelTuner::timed_ops() const {
  const std::scoped_lock lock(mutex_);
  return timed_ops_;
}

double KernelTuner::ms() const {
  const std::scoped_lock lock(mutex_);
  return ms_;
}

}  // namespace fluid
