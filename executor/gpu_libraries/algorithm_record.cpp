#include "executor/gpu_libraries/algorithm_record.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sstream>
#include <string_view>

#include "codegen/compiler.h"
#include "executor/device/bytes_text.h"
#include "executor/gpu_driver/backend.h"
#include "executor/gpu_libraries/gpu_library_call.h"
#include "executor/gpu_libraries/gpu_workspace.h"
#include "executor/options/executor_options.h"

namespace fluid {
namespace {

/// Prefix of entries with EntryLifetime::process.
constexpr std::string_view kProcessPrefix = "here ";
constexpr std::string_view kRejected = "refused";

EntryLifetime lifetime_of(std::string_view text) {
  return text.starts_with(kProcessPrefix) ? EntryLifetime::process : EntryLifetime::persistent;
}

std::string rejection_record(const std::string& why) {
  return std::string(kRejected) + (why.empty() ? "" : " " + why);
}

std::string record_of(const RecordedAlgorithm& recorded) {
  return fmt::format("{} {} {}", recorded.ms, recorded.algorithm.workspace,
                     fmt::join(recorded.algorithm.opaque, " "));
}

/// Parses a recorded algorithm. Returns nullopt when `text` is malformed, or when the algorithm
/// needs more than `workspace` bytes.
std::optional<RecordedAlgorithm> parse_algorithm(const std::string& text, int64_t workspace) {
  std::istringstream in(text);
  RecordedAlgorithm recorded;
  in >> recorded.ms >> recorded.algorithm.workspace;
  for (uint64_t& word : recorded.algorithm.opaque) in >> word;
  const int64_t needed = recorded.algorithm.workspace;
  if (!in || needed < 0 || needed > workspace) return std::nullopt;
  return recorded;
}

}  // namespace

std::string AlgorithmRecord::key_of(const GpuTask& task) const {
  return "k" + ObjectCache::hash_digits(fmt::format("{}, workspace {}, tuned {}\n{}",
                                                    task_key(task), settings_.workspace,
                                                    settings_.tune, settings_.machine));
}

std::string AlgorithmRecord::rejection_key_of(const GpuTask& task) const {
  return "k" + ObjectCache::hash_digits(fmt::format("refused {}, workspace {}\n{}", task_key(task),
                                                    settings_.workspace, settings_.machine));
}

/// Returns the entry for `key`, with kProcessPrefix removed. Searches the entries of this process
/// first, then the entries on disk.
std::optional<std::string> AlgorithmRecord::find_text(const std::string& key) const {
  const auto entry = entries_.find(key);
  if (entry == entries_.end()) return cache_.find(key);
  const std::string& text = entry->second;
  return lifetime_of(text) == EntryLifetime::process ? text.substr(kProcessPrefix.size()) : text;
}

void AlgorithmRecord::set(const std::string& key, const std::string& text, EntryLifetime lifetime) {
  entries_[key] = lifetime == EntryLifetime::process ? std::string(kProcessPrefix) + text : text;
  if (lifetime == EntryLifetime::persistent) cache_.store(key, text);
}

std::optional<RecordedAlgorithm> AlgorithmRecord::find(const GpuTask& task) const {
  const auto text = find_text(key_of(task));
  return text ? parse_algorithm(*text, settings_.workspace) : std::nullopt;
}

void AlgorithmRecord::add_entry(const GpuTask& task, const RecordedAlgorithm& found) {
  entries_.try_emplace(key_of(task), record_of(found));
}

void AlgorithmRecord::store(const GpuTask& task, const RecordedAlgorithm& chosen,
                            EntryLifetime lifetime) {
  set(key_of(task), record_of(chosen), lifetime);
}

void AlgorithmRecord::record_rejection(const GpuTask& task, const std::string& why,
                                       EntryLifetime lifetime) {
  set(rejection_key_of(task), rejection_record(why), lifetime);
}

void AlgorithmRecord::add_rejection_entry(const GpuTask& task, const std::string& found) {
  entries_.try_emplace(rejection_key_of(task), rejection_record(found));
}

std::optional<std::string> AlgorithmRecord::rejection_reason(const GpuTask& task) const {
  const auto text = find_text(rejection_key_of(task));
  if (!text || !text->starts_with(kRejected)) return std::nullopt;
  return text->size() > kRejected.size() ? text->substr(kRejected.size() + 1) : "";
}

bool AlgorithmRecord::adopt_tuning_record(const Entries& entries) {
  bool changed = false;
  for (const auto& [key, text] : entries) {
    const auto [known, is_new] = entries_.insert({key, text});
    if (!is_new && known->second == text) continue;
    known->second = text;
    if (lifetime_of(text) == EntryLifetime::persistent) cache_.store(key, text);
    changed |= !is_new;
  }
  return changed;
}

std::string gpu_fingerprint(const FluidGpuDescription& gpu, const FluidGpuVersions& versions) {
  return fmt::format("{} {}.{} {} {} {} {} {} {}", gpu.name, gpu.major, gpu.minor,
                     gpu.multiprocessors, gpu.clock_khz, versions.driver, versions.runtime,
                     versions.blas, versions.dnn);
}

std::string recorded_algorithm_text(Place place, const ir::Op& fused, int64_t batch,
                                    const ExecutorOptions& options) {
  const AlgorithmRecord record(
      {.machine = gpu_fingerprint(describe_gpu(gpu_backend(), place.index), gpu_backend().versions),
       .workspace = GpuLibraryOptions{options.gpu.workspace}.max_workspace(),
       .tune = options.gpu.tune && !options.cache_dir.empty()},
      {options.cache_dir, CompilerOptions().cache_limit});
  const auto recorded = record.find(GpuLibraryCall(fused, batch, options.gpu.tf32).task);
  if (!recorded) return "chosen when it is prepared";
  const std::string size = bytes_text(static_cast<double>(recorded->algorithm.workspace));
  return recorded->ms > 0 ? fmt::format("chosen at {:.4f} ms, with {}", recorded->ms, size)
                          : fmt::format("the library's favourite, with {}", size);
}

}  // namespace fluid
