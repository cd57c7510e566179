#include "executor/gpu/gpu_products.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "executor/bytes_text.h"
#include "ir/error.h"

namespace fluid {
namespace {

constexpr int kMostChoices = 8;
constexpr int kRounds = 5;  ///< of which the fastest counts

}  // namespace

bool GpuProducts::has_way(const FluidGpuProduct& product) {
  if (record_.refuses(product)) return false;
  std::vector<FluidGpuChoice> ways;
  if (const auto known = record_.find(product)) ways.push_back(known->choice);
  if (ways.empty() || !gpu_->gpu.multiplier(product, ways.front())) {
    ways = gpu_->gpu.choices(product, workspace(), kMostChoices);
  }
  const bool found = std::ranges::any_of(
      ways, [&](const FluidGpuChoice& way) { return bool(gpu_->gpu.multiplier(product, way)); });
  if (!found) record_.refuse(product);
  return found;
}

bool GpuProducts::take(const ProductRecord::Decisions& decisions) {
  const bool changed = record_.take(decisions);
  if (changed) ++revision_;
  return changed;
}

GpuMultiplier GpuProducts::multiplier(const FluidGpuProduct& product,
                                      const FluidGpuFactors& factors) {
  GpuMultiplier found = kept(product, factors);
  if (!found) {
    found = record_.terms().tune ? fastest(product, factors) : favourite(product, factors);
  }
  if (found) return found;
  throw DeviceError(fmt::format(
      "the GPU's library cannot multiply matrices ({}) with a workspace of {}: allow it more",
      text_of(product), bytes_text(static_cast<double>(workspace()))));
}

/// As it was chosen before; empty where it was not, or the library takes the choice no more.
GpuMultiplier GpuProducts::kept(const FluidGpuProduct& product, const FluidGpuFactors& factors) {
  const std::optional<KeptChoice> known = record_.find(product);
  if (!known) return {};
  GpuMultiplier multiplier = gpu_->gpu.multiplier(product, known->choice);
  if (!multiplier) return {};
  compute(multiplier, factors);
  record_.decide(product, *known);
  return multiplier;
}

GpuMultiplier GpuProducts::favourite(const FluidGpuProduct& product,
                                     const FluidGpuFactors& factors) {
  for (const FluidGpuChoice& choice : gpu_->gpu.choices(product, workspace(), kMostChoices)) {
    GpuMultiplier multiplier = gpu_->gpu.multiplier(product, choice);
    if (!multiplier) continue;
    compute(multiplier, factors);
    record_.keep(product, {.choice = choice});
    return multiplier;
  }
  return {};
}

GpuMultiplier GpuProducts::fastest(const FluidGpuProduct& product, const FluidGpuFactors& factors) {
  GpuMultiplier best;
  KeptChoice chosen{.ms = std::numeric_limits<float>::infinity()};
  for (const FluidGpuChoice& choice : gpu_->gpu.choices(product, workspace(), kMostChoices)) {
    GpuMultiplier tried = gpu_->gpu.multiplier(product, choice);
    if (!tried) continue;
    compute(tried, factors);
    const float ms = milliseconds(tried, factors);
    if (ms >= chosen.ms) continue;
    best = std::move(tried);
    chosen = {choice, ms};
  }
  if (best) record_.keep(product, chosen);
  return best;
}

/// Once, which loads its code.
void GpuProducts::compute(const GpuMultiplier& multiplier, const FluidGpuFactors& factors) const {
  gpu_->gpu.multiply(gpu_->stream, multiplier, factors);
  gpu_->gpu.synchronize(gpu_->stream);
}

float GpuProducts::milliseconds(const GpuMultiplier& multiplier,
                                const FluidGpuFactors& factors) const {
  const Gpu& gpu = gpu_->gpu;
  const GpuEvent begin = gpu.event(), end = gpu.event();
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
