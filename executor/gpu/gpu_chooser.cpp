#include "executor/gpu/gpu_chooser.h"

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

bool GpuChooser::has_way(const GpuTask& task) {
  if (record_.refuses(task)) return false;
  std::vector<FluidGpuChoice> ways;
  if (const auto known = record_.find(task)) ways.push_back(known->choice);
  if (ways.empty() || !gpu_->gpu.multiplier(task, ways.front())) {
    ways = gpu_->gpu.choices(task, workspace(), kMostChoices);
  }
  const bool found = std::ranges::any_of(
      ways, [&](const FluidGpuChoice& way) { return bool(gpu_->gpu.multiplier(task, way)); });
  if (!found) record_.refuse(task);
  return found;
}

bool GpuChooser::take(const ChoiceRecord::Decisions& decisions) {
  const bool changed = record_.take(decisions);
  if (changed) ++revision_;
  return changed;
}

GpuMultiplier GpuChooser::multiplier(const GpuTask& task, const FluidGpuFactors& factors) {
  GpuMultiplier found = kept(task, factors);
  if (!found) {
    found = record_.terms().tune ? fastest(task, factors) : favourite(task, factors);
  }
  if (found) return found;
  throw DeviceError(
      fmt::format("the GPU's library cannot compute {} with a workspace of {}: allow it more",
                  text_of(task), bytes_text(static_cast<double>(workspace()))));
}

/// As it was chosen before; empty where it was not, or the library takes the choice no more.
GpuMultiplier GpuChooser::kept(const GpuTask& task, const FluidGpuFactors& factors) {
  const std::optional<KeptChoice> known = record_.find(task);
  if (!known) return {};
  GpuMultiplier multiplier = gpu_->gpu.multiplier(task, known->choice);
  if (!multiplier) return {};
  compute(multiplier, factors);
  record_.decide(task, *known);
  return multiplier;
}

GpuMultiplier GpuChooser::favourite(const GpuTask& task, const FluidGpuFactors& factors) {
  for (const FluidGpuChoice& choice : gpu_->gpu.choices(task, workspace(), kMostChoices)) {
    GpuMultiplier multiplier = gpu_->gpu.multiplier(task, choice);
    if (!multiplier) continue;
    compute(multiplier, factors);
    record_.keep(task, {.choice = choice});
    return multiplier;
  }
  return {};
}

GpuMultiplier GpuChooser::fastest(const GpuTask& task, const FluidGpuFactors& factors) {
  GpuMultiplier best;
  KeptChoice chosen{.ms = std::numeric_limits<float>::infinity()};
  for (const FluidGpuChoice& choice : gpu_->gpu.choices(task, workspace(), kMostChoices)) {
    GpuMultiplier tried = gpu_->gpu.multiplier(task, choice);
    if (!tried) continue;
    compute(tried, factors);
    const float ms = milliseconds(tried, factors);
    if (ms >= chosen.ms) continue;
    best = std::move(tried);
    chosen = {choice, ms};
  }
  if (best) record_.keep(task, chosen);
  return best;
}

/// Once, which loads its code.
void GpuChooser::compute(const GpuMultiplier& multiplier, const FluidGpuFactors& factors) const {
  gpu_->gpu.multiply(gpu_->stream, multiplier, factors);
  gpu_->gpu.synchronize(gpu_->stream);
}

float GpuChooser::milliseconds(const GpuMultiplier& multiplier,
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
