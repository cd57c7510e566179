#include "executor/gpu_libraries/gpu_algorithm_selector.h"

#include <fmt/format.h>

#include <limits>

#include "executor/device/out_of_memory.h"
#include "executor/gpu_libraries/gpu_trial_memory.h"

namespace fluid {

bool GpuAlgorithmSelector::has_algorithm(const GpuTask& task, int64_t workspace) {
  if (record_.rejection_reason(task)) return false;
  GpuTrials trials(*gpu_, task);
  const auto recorded = usable_record(task, workspace);
  if (recorded && trials.create_plan(recorded->algorithm)) return true;
  for (const FluidGpuAlgorithm& algorithm : trials.algorithms(workspace)) {
    if (trials.create_plan(algorithm)) return true;
  }
  record_rejection(trials);
  return false;
}

std::optional<std::string> GpuAlgorithmSelector::rejection_reason(const GpuTask& task) {
  const std::optional<std::string> why = record_.rejection_reason(task);
  if (why) record_.add_rejection_entry(task, *why);
  return why;
}

bool GpuAlgorithmSelector::adopt_tuning_record(const AlgorithmRecord::Entries& entries) {
  const bool changed = record_.adopt_tuning_record(entries);
  if (changed) ++revision_;
  return changed;
}

GpuPlan GpuAlgorithmSelector::create_plan(const GpuTask& task, const FluidGpuOperands& operands,
                                          int64_t workspace,
                                          const OverwritableOperands& overwritable) {
  GpuTrials trials(*gpu_, task);
  GpuPlan found = recorded_plan(trials, operands, workspace);
  if (!found) {
    found = record_.settings().tune ? fastest_plan(trials, operands, workspace, overwritable)
                                    : first_working_plan(trials, operands, workspace);
  }
  if (!found) record_rejection(trials);
  return found;
}

/// Returns the recorded algorithm of a task if the algorithm needs at most `workspace` bytes.
/// Another version of Fluid may have recorded an algorithm that needs more.
std::optional<RecordedAlgorithm> GpuAlgorithmSelector::usable_record(const GpuTask& task,
                                                                     int64_t workspace) const {
  std::optional<RecordedAlgorithm> found = record_.find(task);
  if (found && found->algorithm.workspace > workspace) found.reset();
  return found;
}

/// Creates a plan with the recorded algorithm. Returns an empty plan if no algorithm is recorded,
/// or if the recorded algorithm does not work.
GpuPlan GpuAlgorithmSelector::recorded_plan(GpuTrials& trials, const FluidGpuOperands& operands,
                                            int64_t workspace) {
  const std::optional<RecordedAlgorithm> known = this->usable_record(trials.task(), workspace);
  if (!known) return {};
  std::optional<GpuTrials::Trial> trial = trials.try_algorithm(known->algorithm, operands);
  if (!trial) return {};
  record_.add_entry(trials.task(), *known);
  return std::move(trial->gpu_plan);
}

GpuPlan GpuAlgorithmSelector::first_working_plan(GpuTrials& trials,
                                                 const FluidGpuOperands& operands,
                                                 int64_t workspace) {
  for (const FluidGpuAlgorithm& algorithm : trials.algorithms(workspace)) {
    std::optional<GpuTrials::Trial> trial = trials.try_algorithm(algorithm, operands);
    if (!trial) continue;
    store(trials, {.algorithm = algorithm});
    return std::move(trial->gpu_plan);
  }
  return {};
}

GpuPlan GpuAlgorithmSelector::fastest_plan(GpuTrials& trials, const FluidGpuOperands& operands,
                                           int64_t workspace,
                                           const OverwritableOperands& overwritable) {
  const GpuRandomData noise(gpu_->gpu);
  for (const std::span<std::byte> operand : overwritable) noise.fill(gpu_->stream, operand);
  gpu_->gpu.synchronize(gpu_->stream);
  GpuPlan best;
  RecordedAlgorithm chosen{.ms = std::numeric_limits<float>::infinity()};
  for (const FluidGpuAlgorithm& algorithm : trials.algorithms(workspace)) {
    std::optional<GpuTrials::Trial> trial = trials.try_algorithm(algorithm, operands);
    const std::optional<float> ms =
        trial ? trials.measure_milliseconds(*trial, operands) : std::nullopt;
    if (!ms || *ms >= chosen.ms) continue;
    best = std::move(trial->gpu_plan);
    chosen = {algorithm, *ms};
  }
  if (best) store(trials, chosen);
  return best;
}

/// Records the chosen algorithm. If another algorithm ran out of memory, records the choice only
/// for this process, because the other algorithm may work in a later run.
void GpuAlgorithmSelector::store(const GpuTrials& trials, const RecordedAlgorithm& chosen) {
  if (!trials.ran_out_of_memory()) return record_.store(trials.task(), chosen);
  record_.store(trials.task(), chosen, EntryLifetime::process);
  notes_.insert(
      fmt::format("the GPU lacked memory for one of the algorithms of {} ({}): another algorithm "
                  "is used, also by runs that resume from this run's checkpoints",
                  task_text(trials.task()), trials.failure_message()));
}

void GpuAlgorithmSelector::record_rejection(const GpuTrials& trials) {
  if (trials.ran_out_of_memory()) {
    throw OutOfMemory(fmt::format("the GPU lacks memory to compute {} ({})",
                                  task_text(trials.task()), trials.failure_message()),
                      out_of_memory_advice(gpu_->gpu.table(), gpu_->gpu.get()));
  }
  record_.record_rejection(trials.task(), trials.failure_message(), trials.failure_lifetime());
}

}  // namespace fluid
