#include "executor/gpu_libraries/choice_record.h"

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

constexpr std::string_view kHere = "here ";  ///< prefix of decisions that are not kept on disk
constexpr std::string_view kRejected = "refused";

DecisionScope how_long(std::string_view text) {
  return text.starts_with(kHere) ? DecisionScope::here : DecisionScope::later;
}

std::string rejection_record(const std::string& why) {
  return std::string(kRejected) + (why.empty() ? "" : " " + why);
}

std::string record_of(const KeptChoice& kept) {
  return fmt::format("{} {} {}", kept.ms, kept.choice.workspace,
                     fmt::join(kept.choice.opaque, " "));
}

/// Parses a choice. Returns nullopt when the text is malformed or needs more than `workspace`
/// bytes.
std::optional<KeptChoice> choice_in(const std::string& text, int64_t workspace) {
  std::istringstream in(text);
  KeptChoice kept;
  in >> kept.ms >> kept.choice.workspace;
  for (uint64_t& word : kept.choice.opaque) in >> word;
  const int64_t needed = kept.choice.workspace;
  if (!in || needed < 0 || needed > workspace) return std::nullopt;
  return kept;
}

}  // namespace

std::string ChoiceRecord::key_of(const GpuTask& task) const {
  return "k" + ObjectCache::key_of(fmt::format("{}, workspace {}, tuned {}\n{}", key_text_of(task),
                                               terms_.workspace, terms_.tune, terms_.machine));
}

std::string ChoiceRecord::rejection_key_of(const GpuTask& task) const {
  return "k" + ObjectCache::key_of(fmt::format("refused {}, workspace {}\n{}", key_text_of(task),
                                               terms_.workspace, terms_.machine));
}

/// The decision of this process, else the one on disk, without the prefix kHere.
std::optional<std::string> ChoiceRecord::text_at(const std::string& key) const {
  const auto decided = decided_.find(key);
  if (decided == decided_.end()) return cache_.find(key);
  const std::string& text = decided->second;
  return how_long(text) == DecisionScope::here ? text.substr(kHere.size()) : text;
}

void ChoiceRecord::set(const std::string& key, const std::string& text, DecisionScope lasts) {
  decided_[key] = lasts == DecisionScope::here ? std::string(kHere) + text : text;
  if (lasts == DecisionScope::later) cache_.put(key, text);
}

std::optional<KeptChoice> ChoiceRecord::find(const GpuTask& task) const {
  const auto text = text_at(key_of(task));
  return text ? choice_in(*text, terms_.workspace) : std::nullopt;
}

void ChoiceRecord::decide(const GpuTask& task, const KeptChoice& found) {
  decided_.try_emplace(key_of(task), record_of(found));
}

void ChoiceRecord::keep(const GpuTask& task, const KeptChoice& kept, DecisionScope lasts) {
  set(key_of(task), record_of(kept), lasts);
}

void ChoiceRecord::record_rejection(const GpuTask& task, const std::string& why,
                                    DecisionScope lasts) {
  set(rejection_key_of(task), rejection_record(why), lasts);
}

void ChoiceRecord::decide_rejection(const GpuTask& task, const std::string& found) {
  decided_.try_emplace(rejection_key_of(task), rejection_record(found));
}

std::optional<std::string> ChoiceRecord::refusal(const GpuTask& task) const {
  const auto text = text_at(rejection_key_of(task));
  if (!text || !text->starts_with(kRejected)) return std::nullopt;
  return text->size() > kRejected.size() ? text->substr(kRejected.size() + 1) : "";
}

bool ChoiceRecord::adopt_tuning_record(const Decisions& decisions) {
  bool changed = false;
  for (const auto& [key, text] : decisions) {
    const auto [known, is_new] = decided_.insert({key, text});
    if (!is_new && known->second == text) continue;
    known->second = text;
    if (how_long(text) == DecisionScope::later) cache_.put(key, text);
    changed |= !is_new;
  }
  return changed;
}

std::string machine_of(const FluidGpuDescription& gpu, const FluidGpuVersions& versions) {
  return fmt::format("{} {}.{} {} {} {} {} {} {}", gpu.name, gpu.major, gpu.minor,
                     gpu.multiprocessors, gpu.clock_khz, versions.driver, versions.runtime,
                     versions.blas, versions.dnn);
}

std::string choice_text(Place place, const ir::Op& fused, int64_t batch,
                        const ExecutorOptions& options) {
  const ChoiceRecord record(
      {.machine = machine_of(describe_gpu(gpu_backend(), place.index), gpu_backend().versions),
       .workspace = GpuLibraries{options.gpu.workspace}.most(),
       .tune = options.gpu.tune && !options.cache_dir.empty()},
      {options.cache_dir, CompilerOptions().cache_limit});
  const auto kept = record.find(GpuLibraryCall(fused, batch, options.gpu.tf32).task);
  if (!kept) return "chosen when it is prepared";
  const std::string size = bytes_text(static_cast<double>(kept->choice.workspace));
  return kept->ms > 0 ? fmt::format("chosen at {:.4f} ms, with {}", kept->ms, size)
                      : fmt::format("the library's favourite, with {}", size);
}

}  // namespace fluid
