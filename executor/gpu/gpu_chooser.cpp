#include "executor/gpu/gpu_chooser.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "executor/bytes_text.h"
#include "executor/gpu/gpu_noise.h"
#include "ir/error.h"

namespace fluid {
namespace {

constexpr int kMostChoices = 8;
constexpr int kCalls = 8;     ///< timed as one: what events and a launch take is shared
constexpr float kLongMs = 1;  ///< of a call for which that is nothing
constexpr int kRounds = 5;    ///< of which the fastest counts

}  // namespace

bool GpuChooser::has_way(const GpuTask& task, int64_t workspace) {
  if (record_.refuses(task)) return false;
  std::vector<FluidGpuChoice> ways;
  if (const auto kept = known(task, workspace)) ways.push_back(kept->choice);
  if (ways.empty() || !gpu_->gpu.multiplier(task, ways.front())) {
    ways = gpu_->gpu.choices(task, workspace, kMostChoices);
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

GpuMultiplier GpuChooser::multiplier(const GpuTask& task, const FluidGpuFactors& factors,
                                     int64_t workspace, const Unused& unused) {
  GpuMultiplier found = kept(task, factors, workspace);
  if (!found) {
    found = record_.terms().tune ? fastest(task, factors, workspace, unused)
                                 : favourite(task, factors, workspace);
  }
  if (found) return found;
  throw DeviceError(
      fmt::format("the GPU's library cannot compute {} with a workspace of {}: allow it more",
                  text_of(task), bytes_text(static_cast<double>(workspace))));
}

/// What the record has, if there is memory for it: what says how much may have been another Fluid.
std::optional<KeptChoice> GpuChooser::known(const GpuTask& task, int64_t workspace) const {
  std::optional<KeptChoice> found = record_.find(task);
  if (found && found->choice.workspace > workspace) found.reset();
  return found;
}

/// As it was chosen before; empty where it was not, or the library takes the choice no more.
GpuMultiplier GpuChooser::kept(const GpuTask& task, const FluidGpuFactors& factors,
                               int64_t workspace) {
  const std::optional<KeptChoice> known = this->known(task, workspace);
  if (!known) return {};
  GpuMultiplier multiplier = gpu_->gpu.multiplier(task, known->choice);
  if (!multiplier || !works(multiplier, factors)) return {};
  record_.decide(task, *known);
  return multiplier;
}

GpuMultiplier GpuChooser::favourite(const GpuTask& task, const FluidGpuFactors& factors,
                                    int64_t workspace) {
  for (const FluidGpuChoice& choice : gpu_->gpu.choices(task, workspace, kMostChoices)) {
    GpuMultiplier multiplier = gpu_->gpu.multiplier(task, choice);
    if (!multiplier || !works(multiplier, factors)) continue;
    record_.keep(task, {.choice = choice});
    return multiplier;
  }
  return {};
}

GpuMultiplier GpuChooser::fastest(const GpuTask& task, const FluidGpuFactors& factors,
                                  int64_t workspace, const Unused& unused) {
  const GpuNoise noise(gpu_->gpu);
  for (const std::span<std::byte> operand : unused) noise.fill(gpu_->stream, operand);
  gpu_->gpu.synchronize(gpu_->stream);
  GpuMultiplier best;
  KeptChoice chosen{.ms = std::numeric_limits<float>::infinity()};
  for (const FluidGpuChoice& choice : gpu_->gpu.choices(task, workspace, kMostChoices)) {
    GpuMultiplier tried = gpu_->gpu.multiplier(task, choice);
    if (!tried || !works(tried, factors)) continue;
    const float ms = milliseconds(tried, factors);
    if (ms >= chosen.ms) continue;
    best = std::move(tried);
    chosen = {choice, ms};
  }
  if (best) record_.keep(task, chosen);
  return best;
}

/// Computes it once, which loads its code, and records it, as steps do. False where the library
/// then finds that it cannot. That the GPU itself failed is thrown.
bool GpuChooser::works(const GpuMultiplier& multiplier, const FluidGpuFactors& factors) const {
  bool able = true;
  try {
    gpu_->gpu.multiply(gpu_->stream, multiplier, factors);
    recorded(multiplier, factors, 1);
  } catch (const DeviceError&) {
    able = false;
  }
  gpu_->gpu.synchronize(gpu_->stream);
  return able;
}

GpuGraph GpuChooser::recorded(const GpuMultiplier& multiplier, const FluidGpuFactors& factors,
                              int calls) const {
  return gpu_->gpu.captured(gpu_->stream, [&] {
    for (int call = 0; call < calls; ++call) {
      gpu_->gpu.multiply(gpu_->stream, multiplier, factors);
    }
  });
}

/// Of one call.
float GpuChooser::milliseconds(const GpuMultiplier& multiplier,
                               const FluidGpuFactors& factors) const {
  const float alone = milliseconds(recorded(multiplier, factors, 1));
  if (alone > kLongMs) return alone;
  return milliseconds(recorded(multiplier, factors, kCalls)) / kCalls;
}

/// The host queues all rounds while the first launch, which no round counts, keeps the GPU busy: so
/// that a round does not wait for it.
float GpuChooser::milliseconds(const GpuGraph& calls) const {
  const Gpu& gpu = gpu_->gpu;
  std::vector<GpuEvent> marks;
  for (int round = 0; round <= kRounds; ++round) {
    gpu.launch(calls, gpu_->stream);
    gpu.record(marks.emplace_back(gpu.event(fluid_gpu_times)), gpu_->stream);
  }
  gpu.synchronize(marks.back());
  float least = std::numeric_limits<float>::infinity();
  for (size_t end = 1; end < marks.size(); ++end) {
    least = std::min(least, gpu.milliseconds(marks[end - 1], marks[end]));
  }
  return least;
}

}  // namespace fluid
