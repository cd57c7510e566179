#include "executor/gpu/gpu_products.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <sstream>

#include "executor/bytes_text.h"
#include "ir/error.h"

namespace fluid {
namespace {

constexpr int kMostChoices = 8;
constexpr int kRounds = 5;  ///< the fastest counts

std::string text_of(const FluidGpuChoice& choice) {
  return fmt::format("{} {}", choice.workspace, fmt::join(choice.opaque, " "));
}

/// Nothing when the text is no choice that needs at most `workspace` bytes.
std::optional<FluidGpuChoice> choice_in(const std::string& text, int64_t workspace) {
  std::istringstream in(text);
  FluidGpuChoice choice = {};
  in >> choice.workspace;
  for (uint64_t& word : choice.opaque) in >> word;
  if (!in || choice.workspace < 0 || choice.workspace > workspace) return std::nullopt;
  return choice;
}

}  // namespace

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

GpuMultiplier GpuProducts::multiplier(const FluidGpuProduct& product,
                                      const FluidGpuFactors& factors) {
  const std::string key =
      "k" + ObjectCache::key_of(fmt::format(
                "product {}, rows {} {} {}, matrices {} {} {}, workspace {}, tuned {}\n{}",
                text_of(product), product.a_row, product.b_row, product.result_row,
                product.a_matrix, product.b_matrix, product.result_matrix, options_.workspace,
                options_.tune, options_.machine));
  GpuMultiplier multiplier = kept(key, product, factors);
  return multiplier ? std::move(multiplier) : chosen(key, product, factors);
}

/// As it was chosen before; empty where it was not, or the library takes the choice no more.
GpuMultiplier GpuProducts::kept(const std::string& key, const FluidGpuProduct& product,
                                const FluidGpuFactors& factors) const {
  std::optional<FluidGpuChoice> choice;
  if (const auto known = choices_.find(key); known != choices_.end()) {
    choice = known->second;
  } else if (const auto text = cache_.find(key)) {
    choice = choice_in(*text, options_.workspace);
  }
  if (!choice) return {};
  GpuMultiplier multiplier = gpu_->gpu.multiplier(product, *choice);
  if (!multiplier) return {};
  gpu_->gpu.multiply(gpu_->stream, multiplier, factors);
  gpu_->gpu.synchronize(gpu_->stream);
  return multiplier;
}

GpuMultiplier GpuProducts::chosen(const std::string& key, const FluidGpuProduct& product,
                                  const FluidGpuFactors& factors) {
  const int most = options_.tune ? kMostChoices : 1;
  const std::vector<FluidGpuChoice> choices = gpu_->gpu.choices(product, options_.workspace, most);
  GpuMultiplier best;
  float fastest = std::numeric_limits<float>::infinity();
  for (const FluidGpuChoice& choice : choices) {
    GpuMultiplier tried = gpu_->gpu.multiplier(product, choice);
    if (!tried) continue;
    const float ms = milliseconds(tried, factors);
    if (best && ms >= fastest) continue;
    best = std::move(tried);
    fastest = ms;
    choices_[key] = choice;
  }
  if (!best) {
    throw DeviceError(fmt::format(
        "the GPU's library cannot multiply matrices ({}) with a workspace of {}: allow it more",
        text_of(product), bytes_text(static_cast<double>(options_.workspace))));
  }
  cache_.put(key, text_of(choices_.at(key)));
  return best;
}

/// The least of some times, after one that loads code.
float GpuProducts::milliseconds(const GpuMultiplier& multiplier,
                                const FluidGpuFactors& factors) const {
  const Gpu& gpu = gpu_->gpu;
  const GpuEvent begin = gpu.event(), end = gpu.event();
  gpu.multiply(gpu_->stream, multiplier, factors);
  gpu.synchronize(gpu_->stream);
  float least = std::numeric_limits<float>::infinity();
  for (int round = 0; round < kRounds; ++round) {
    gpu.record(begin, gpu_->stream);
    gpu.multiply(gpu_->stream, multiplier, factors);
    gpu.record(end, gpu_->stream);
    gpu.synchronize(end);
    least = std::min(least, gpu.milliseconds(begin, end));
  }
  return least;
}

}  // namespace fluid
