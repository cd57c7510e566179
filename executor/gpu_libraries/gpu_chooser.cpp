#include "executor/gpu_libraries/gpu_chooser.h"

#include <fmt/format.h>

#include <limits>

#include "executor/device/out_of_memory.h"
#include "executor/gpu_libraries/gpu_trial_memory.h"

namespace fluid {

bool GpuChooser::has_algorithm(const GpuTask& task, int64_t workspace) {
  if (record_.refusal(task)) return false;
  GpuTrials trials(*gpu_, task);
  const auto kept = known(task, workspace);
  if (kept && trials.prepared(kept->choice)) return true;
  for (const FluidGpuChoice& way : trials.ways(workspace)) {
    if (trials.prepared(way)) return true;
  }
  record_rejection(trials);
  return false;
}

std::optional<std::string> GpuChooser::refusal(const GpuTask& task) {
  const std::optional<std::string> why = record_.refusal(task);
  if (why) record_.decide_rejection(task, *why);
  return why;
}

bool GpuChooser::adopt_tuning_record(const ChoiceRecord::Decisions& decisions) {
  const bool changed = record_.adopt_tuning_record(decisions);
  if (changed) ++revision_;
  return changed;
}

GpuPlan GpuChooser::gpu_plan(const GpuTask& task, const FluidGpuOperands& factors,
                             int64_t workspace, const Unused& unused) {
  GpuTrials trials(*gpu_, task);
  GpuPlan found = kept(trials, factors, workspace);
  if (!found) {
    found = record_.terms().tune ? fastest(trials, factors, workspace, unused)
                                 : favourite(trials, factors, workspace);
  }
  if (!found) record_rejection(trials);
  return found;
}

/// The recorded choice, if it needs at most `workspace` bytes. A record of another Fluid version
/// may need more.
std::optional<KeptChoice> GpuChooser::known(const GpuTask& task, int64_t workspace) const {
  std::optional<KeptChoice> found = record_.find(task);
  if (found && found->choice.workspace > workspace) found.reset();
  return found;
}

/// The plan of the recorded choice. Empty when there is none, or the library no longer accepts it.
GpuPlan GpuChooser::kept(GpuTrials& trials, const FluidGpuOperands& factors, int64_t workspace) {
  const std::optional<KeptChoice> known = this->known(trials.task(), workspace);
  if (!known) return {};
  std::optional<GpuTrials::Way> way = trials.tried(known->choice, factors);
  if (!way) return {};
  record_.decide(trials.task(), *known);
  return std::move(way->gpu_plan);
}

GpuPlan GpuChooser::favourite(GpuTrials& trials, const FluidGpuOperands& factors,
                              int64_t workspace) {
  for (const FluidGpuChoice& choice : trials.ways(workspace)) {
    std::optional<GpuTrials::Way> way = trials.tried(choice, factors);
    if (!way) continue;
    keep(trials, {.choice = choice});
    return std::move(way->gpu_plan);
  }
  return {};
}

GpuPlan GpuChooser::fastest(GpuTrials& trials, const FluidGpuOperands& factors, int64_t workspace,
                            const Unused& unused) {
  const GpuNoise noise(gpu_->gpu);
  for (const std::span<std::byte> operand : unused) noise.fill(gpu_->stream, operand);
  gpu_->gpu.synchronize(gpu_->stream);
  GpuPlan best;
  KeptChoice chosen{.ms = std::numeric_limits<float>::infinity()};
  for (const FluidGpuChoice& choice : trials.ways(workspace)) {
    std::optional<GpuTrials::Way> way = trials.tried(choice, factors);
    const std::optional<float> ms = way ? trials.milliseconds(*way, factors) : std::nullopt;
    if (!ms || *ms >= chosen.ms) continue;
    best = std::move(way->gpu_plan);
    chosen = {choice, *ms};
  }
  if (best) keep(trials, chosen);
  return best;
}

/// Without the lack of memory another algorithm might have been chosen, so the choice is not kept
/// on disk.
void GpuChooser::keep(const GpuTrials& trials, const KeptChoice& chosen) {
  if (!trials.lacked_memory()) return record_.keep(trials.task(), chosen);
  record_.keep(trials.task(), chosen, DecisionScope::here);
  notes_.insert(
      fmt::format("the GPU lacked memory for one of the algorithms of {} ({}): another algorithm "
                  "is used, also by runs that resume from this run's checkpoints",
                  text_of(trials.task()), trials.why()));
}

void GpuChooser::record_rejection(const GpuTrials& trials) {
  if (trials.lacked_memory()) {
    throw OutOfMemory(fmt::format("the GPU lacks memory to compute {} ({})", text_of(trials.task()),
                                  trials.why()),
                      memory_advice(gpu_->gpu.table(), gpu_->gpu.get()));
  }
  record_.record_rejection(trials.task(), trials.why(), trials.lasts());
}

}  // namespace fluid
