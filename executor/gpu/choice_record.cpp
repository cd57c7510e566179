#include "executor/gpu/choice_record.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sstream>

#include "codegen/compiler.h"
#include "executor/bytes_text.h"
#include "executor/executor.h"
#include "executor/gpu/backend.h"
#include "executor/gpu/gpu_library_call.h"
#include "executor/gpu/gpu_target.h"

namespace fluid {
namespace {

constexpr const char* kRefused = "refused";

std::string record_of(const KeptChoice& kept) {
  return fmt::format("{} {} {}", kept.ms, kept.choice.workspace,
                     fmt::join(kept.choice.opaque, " "));
}

/// Nothing when the text is no choice that needs at most `workspace` bytes.
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

std::string ChoiceRecord::refusal_key_of(const GpuTask& task) const {
  return "k" + ObjectCache::key_of(fmt::format("refused {}, workspace {}\n{}", key_text_of(task),
                                               terms_.workspace, terms_.machine));
}

std::optional<KeptChoice> ChoiceRecord::find(const GpuTask& task) const {
  const std::string key = key_of(task);
  if (const auto known = decided_.find(key); known != decided_.end()) {
    return choice_in(known->second, terms_.workspace);
  }
  const auto text = cache_.find(key);
  return text ? choice_in(*text, terms_.workspace) : std::nullopt;
}

void ChoiceRecord::decide(const GpuTask& task, const KeptChoice& kept) {
  decided_[key_of(task)] = record_of(kept);
}

void ChoiceRecord::keep(const GpuTask& task, const KeptChoice& kept) {
  decide(task, kept);
  cache_.put(key_of(task), record_of(kept));
}

void ChoiceRecord::refuse(const GpuTask& task) {
  const std::string key = refusal_key_of(task);
  decided_[key] = kRefused;
  cache_.put(key, kRefused);
}

bool ChoiceRecord::refuses(const GpuTask& task) const {
  const std::string key = refusal_key_of(task);
  return decided_.contains(key) || cache_.find(key) == kRefused;
}

bool ChoiceRecord::take(const Decisions& decisions) {
  bool changed = false;
  for (const auto& [key, text] : decisions) {
    const auto [known, is_new] = decided_.insert({key, text});
    if (!is_new && known->second == text) continue;
    known->second = text;
    cache_.put(key, text);
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
       .workspace = GpuLibraries{options.workspace}.most(),
       .tune = options.tune && !options.cache_dir.empty()},
      {options.cache_dir, CompilerOptions().cache_limit});
  const auto kept = record.find(GpuLibraryCall(fused, batch, options.tf32).task);
  if (!kept) return "chosen when it is prepared";
  const std::string size = bytes_text(static_cast<double>(kept->choice.workspace));
  return kept->ms > 0 ? fmt::format("chosen at {:.4f} ms, with {}", kept->ms, size)
                      : fmt::format("the library's favourite, with {}", size);
}

}  // namespace fluid
