#include "executor/cpu/kernel_tuner.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ranges>
#include <string_view>
#include <tuple>

#include "codegen/backend.h"
#include "codegen/schedule.h"
#include "executor/cpu/kernel_trial.h"
#include "executor/cpu_libraries/library.h"
#include "executor/device/op_cost.h"
#include "executor/device/out_of_memory.h"
#include "executor/host/parallel.h"
#include "ir/print.h"
#include "ir/stopwatch.h"
#include "ops/table.h"

namespace fluid {
namespace {

constexpr double kMinFlops = 4e6;  // an op of fewer FLOPs takes less than about 0.1 ms
constexpr double kTie = 1.03;      // times within this factor count as equal
constexpr double kFarSlower = 4;   // predicted factor from which generated code is not timed

constexpr std::string_view kKeyPrefix = "kernels ";
constexpr const char* kGenerated = "generated";

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

bool is_timed(const ir::Op& op) {
  const auto is_float_value = [](const Value& v) { return is_float(v.type().dtype); };
  return std::ranges::all_of(op.operands, is_float_value) && cost_of(op, 1).flops >= kMinFlops;
}

/// Parses an entry of the record.
std::map<std::string, double> parse(const std::string& entry) {
  try {
    return nlohmann::json::parse(entry).at("seconds").get<std::map<std::string, double>>();
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

}  // namespace

KernelTuner::KernelTuner(const TargetDescription& cpu, Settings settings)
    : cpu_(cpu),
      settings_(std::move(settings)),
      cache_(settings_.cache_dir, CompilerOptions().cache_limit),
      kernels_(cpu_accumulators(cpu.vector_bits)) {}

KernelTimes KernelTuner::measured(KernelTimes kernels) {
  std::vector<KernelCandidate>& libraries = kernels.libraries;
  if (libraries.empty() || !is_timed(kernels.op)) return kernels;
  const std::optional<Seconds> seconds = seconds_of(kernels);
  if (!seconds) return kernels;
  std::erase_if(libraries,
                [&](const KernelCandidate& c) { return !seconds->contains(label_of(c)); });
  if (libraries.empty()) return kernels;
  for (KernelCandidate& candidate : libraries) {
    candidate.seconds = seconds->at(label_of(candidate));
    candidate.measured = true;
  }
  const double best = std::ranges::min(libraries, {}, &KernelCandidate::seconds).seconds;
  for (KernelCandidate& candidate : libraries) {
    if (candidate.seconds <= kTie * best) candidate.seconds = best;
  }
  std::ranges::sort(libraries, {}, [&](const KernelCandidate& c) {
    return std::tuple(c.seconds, position_of(kernels.op, c), label_of(c));
  });
  if (const auto generated = seconds->find(kGenerated); generated != seconds->end()) {
    const bool wins = kTie * generated->second < best;
    kernels.generated = wins ? generated->second : std::max(generated->second, kTie * best);
  }
  return kernels;
}

/// Returns the times of the kernels; nullopt if they are not timed.
std::optional<KernelTuner::Seconds> KernelTuner::seconds_of(const KernelTimes& kernels) {
  const std::string digits = ObjectCache::hash_digits(
      fmt::format("{}\n{}, {}, {} threads\n{}, {}", text_of(chain_of(kernels)), cpu_.cpu,
                  fmt::join(std::views::keys(cpu_.gops), " "), cpu_.threads,
                  emit::code_generator_version(), library_version()));
  const std::string key = std::string(kKeyPrefix) + digits;
  const std::scoped_lock lock(mutex_);
  if (const auto used = used_.find(key); used != used_.end()) return parse(used->second);
  std::optional<std::string> entry;
  if (const auto recorded = settings_.record.find(key); recorded != settings_.record.end()) {
    entry = recorded->second;
  } else if (settings_.measures) {
    entry = cached_or_measured("k" + digits, kernels);
    if (entry && settings_.communicator != nullptr)
      entry = settings_.communicator->propose(key, *entry);
  }
  if (!entry) return std::nullopt;
  used_[key] = *entry;
  return parse(*entry);
}

std::optional<std::string> KernelTuner::cached_or_measured(const std::string& key,
                                                           const KernelTimes& kernels) {
  if (const auto cached = cache_.find(key)) return cached;
  std::optional<std::string> entry = measure(kernels);
  if (entry) cache_.store(key, *entry);
  return entry;
}

/// Times the kernels. Returns nullopt if there is too little memory, which may not be so in a later
/// run.
std::optional<std::string> KernelTuner::measure(const KernelTimes& kernels) {
  const Stopwatch watch;
  const KernelTrial::Chain chain = chain_of(kernels);
  std::vector<std::string> labels;
  std::vector<std::unique_ptr<KernelTrial>> trials;
  try {
    for (const KernelCandidate& candidate : kernels.libraries) {
      if (!kernels.epilogue.empty() && !candidate.accepts_layouts(kernels.op, *chain.back()))
        continue;
      try {
        trials.push_back(std::make_unique<KernelTrial>(chain, candidate, cpu_.threads));
        labels.push_back(label_of(candidate));
      } catch (const OutOfMemory&) {
        throw;
      } catch (const DeviceError&) {
        // The library cannot prepare this kernel.
      }
    }
    const double best = std::ranges::min(kernels.libraries, {}, &KernelCandidate::seconds).seconds;
    if (kernels.epilogue.empty() && kernels.generated < kFarSlower * best) {
      if (!compiler_)
        compiler_.emplace(
            CompilerOptions{.cache_dir = settings_.cache_dir, .threads = cpu_.threads});
      trials.push_back(std::make_unique<KernelTrial>(chain, kernels_, *compiler_, cpu_.threads));
      labels.emplace_back(kGenerated);
    }
    const std::vector<double> seconds = shortest_seconds(trials);
    auto entry = nlohmann::ordered_json{{"op", text_of(chain)}};
    for (size_t i = 0; i < labels.size(); ++i) entry["seconds"][labels[i]] = rounded(seconds[i]);
    ++timed_ops_;
    ms_ += watch.ms();
    return entry.dump();
  } catch (const OutOfMemory&) {
    return std::nullopt;
  }
}

bool has_kernel_times(const std::map<std::string, std::string>& record) {
  const auto first = record.lower_bound(std::string(kKeyPrefix));
  return first != record.end() && first->first.starts_with(kKeyPrefix);
}

std::map<std::string, std::string> KernelTuner::record() const {
  const std::scoped_lock lock(mutex_);
  return used_;
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
