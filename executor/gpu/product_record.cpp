#include "executor/gpu/product_record.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sstream>

#include "codegen/compiler.h"
#include "executor/bytes_text.h"
#include "executor/executor.h"
#include "executor/gpu/backend.h"
#include "executor/gpu/gpu_product.h"
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

std::string all_of(const FluidGpuProduct& p) {
  return fmt::format("{}, rows {} {} {}, matrices {} {} {}", text_of(p), p.a_row, p.b_row,
                     p.result_row, p.a_matrix, p.b_matrix, p.result_matrix);
}

}  // namespace

std::string ProductRecord::key_of(const FluidGpuProduct& p) const {
  return "k" + ObjectCache::key_of(fmt::format("product {}, workspace {}, tuned {}\n{}", all_of(p),
                                               terms_.workspace, terms_.tune, terms_.machine));
}

std::string ProductRecord::refusal_key_of(FluidGpuProduct p) const {
  p.tf32 = 0;
  return "k" + ObjectCache::key_of(fmt::format("refused product {}, workspace {}\n{}", all_of(p),
                                               terms_.workspace, terms_.machine));
}

std::optional<KeptChoice> ProductRecord::find(const FluidGpuProduct& product) const {
  const std::string key = key_of(product);
  if (const auto known = decided_.find(key); known != decided_.end()) {
    return choice_in(known->second, terms_.workspace);
  }
  const auto text = cache_.find(key);
  return text ? choice_in(*text, terms_.workspace) : std::nullopt;
}

void ProductRecord::decide(const FluidGpuProduct& product, const KeptChoice& kept) {
  decided_[key_of(product)] = record_of(kept);
}

void ProductRecord::keep(const FluidGpuProduct& product, const KeptChoice& kept) {
  decide(product, kept);
  cache_.put(key_of(product), record_of(kept));
}

void ProductRecord::refuse(const FluidGpuProduct& product) {
  const std::string key = refusal_key_of(product);
  decided_[key] = kRefused;
  cache_.put(key, kRefused);
}

bool ProductRecord::refuses(const FluidGpuProduct& product) const {
  const std::string key = refusal_key_of(product);
  return decided_.contains(key) || cache_.find(key) == kRefused;
}

bool ProductRecord::take(const Decisions& decisions) {
  bool changed = false;
  for (const auto& [key, text] : decisions) {
    const auto [known, is_new] = decided_.insert({key, text});
    if (is_new || known->second == text) continue;
    known->second = text;
    cache_.put(key, text);
    changed = true;
  }
  return changed;
}

std::string machine_of(const FluidGpuDescription& gpu, const FluidGpuVersions& versions) {
  return fmt::format("{} {}.{} {} {} {} {} {}", gpu.name, gpu.major, gpu.minor, gpu.multiprocessors,
                     gpu.clock_khz, versions.driver, versions.runtime, versions.blas);
}

std::string text_of(const FluidGpuProduct& p) {
  constexpr const char* kNames[] = {"f64", "f32", "f16", "bf16"};
  std::string text = fmt::format("{} {} x {} of {}", kNames[p.operands], p.m, p.n, p.k);
  if (p.count > 1) text += fmt::format(", {} of them", p.count);
  if (p.result != p.operands) text += fmt::format(" to {}", kNames[p.result]);
  const std::pair<bool, const char*> said[] = {{p.operands == fluid_gpu_f32 && p.tf32 != 0, "TF32"},
                                               {p.transpose_a != 0, "transposed a"},
                                               {p.transpose_b != 0, "transposed b"},
                                               {p.adds != 0, "added"},
                                               {p.bias != 0, "with bias"},
                                               {p.relu != 0, "with relu"}};
  for (const auto& [is_so, words] : said) {
    if (is_so) text += fmt::format(", {}", words);
  }
  return text;
}

std::string choice_text(Place place, const ir::Op& fused, int64_t batch,
                        const ExecutorOptions& options) {
  const int64_t workspace = options.workspace > 0 ? options.workspace : kGpuWorkspace;
  const ProductRecord record(
      {.machine = machine_of(describe_gpu(gpu_backend(), place.index), gpu_backend().versions),
       .workspace = workspace,
       .tune = options.tune && !options.cache_dir.empty()},
      {options.cache_dir, CompilerOptions().cache_limit});
  const auto kept = record.find(GpuProductCall(fused, batch, options.tf32).product);
  if (!kept) return "chosen when it is prepared";
  const std::string size = bytes_text(static_cast<double>(kept->choice.workspace));
  return kept->ms > 0 ? fmt::format("chosen at {:.4f} ms, with {}", kept->ms, size)
                      : fmt::format("the library's favourite, with {}", size);
}

}  // namespace fluid
