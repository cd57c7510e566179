#pragma once

#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "executor/gpu_driver/open_gpu.h"
#include "executor/gpu_libraries/algorithm_record.h"
#include "executor/gpu_libraries/gpu_trials.h"

namespace fluid {

/// Chooses algorithms of GPU libraries: the fastest by timing, or the first that works in the
/// library's order. Records the choices, so that the results of a program are bitwise equal in
/// every run.
class GpuAlgorithmSelector {
 public:
  GpuAlgorithmSelector(std::shared_ptr<const OpenGpu> gpu, AlgorithmRecord record)
      : gpu_(std::move(gpu)), record_(std::move(record)) {}

  /// Whether the library can compute the task with at most `workspace` bytes of workspace. If not,
  /// records a rejection. Throws OutOfMemory if an algorithm ran out of memory and no other
  /// algorithm works.
  bool has_algorithm(const GpuTask& task, int64_t workspace);
  /// Memory of the operands whose contents create_plan() may overwrite.
  using OverwritableOperands = std::vector<std::span<std::byte>>;
  /// Creates a plan for a task, ready for stream capture. Runs the task on `operands`; this
  /// overwrites the result and the workspace. To time algorithms, runs the task many times, after
  /// filling `overwritable` with random data, because GPUs compute faster on zeros.
  ///
  /// Returns an empty plan, and records a rejection, when no algorithm of the library works. Skips
  /// algorithms that run out of memory. If an algorithm was skipped, the choice is not written to
  /// disk, and notes() reports the skipped algorithm. Throws OutOfMemory when no algorithm works
  /// and at least one ran out of memory.
  GpuPlan create_plan(const GpuTask& task, const FluidGpuOperands& operands, int64_t workspace,
                      const OverwritableOperands& overwritable = {});
  /// Messages to the user about algorithms that were skipped because they ran out of memory.
  std::vector<std::string> notes() const { return {notes_.begin(), notes_.end()}; }
  /// Returns the recorded reason why the library has no algorithm for the task; nullopt if no
  /// rejection is recorded. A returned rejection holds for the rest of this process.
  std::optional<std::string> rejection_reason(const GpuTask& task);
  const AlgorithmRecord& record() const { return record_; }
  /// Merges entries as AlgorithmRecord::adopt_tuning_record() does. If existing entries change,
  /// revision() increases, because plans created earlier may use algorithms that differ from the
  /// new entries.
  bool adopt_tuning_record(const AlgorithmRecord::Entries& entries);
  /// Number of adopt_tuning_record() calls so far that changed existing entries.
  int revision() const { return revision_; }

 private:
  std::optional<RecordedAlgorithm> usable_record(const GpuTask& task, int64_t workspace) const;
  GpuPlan recorded_plan(GpuTrials& trials, const FluidGpuOperands& operands, int64_t workspace);
  GpuPlan first_working_plan(GpuTrials& trials, const FluidGpuOperands& operands,
                             int64_t workspace);
  GpuPlan fastest_plan(GpuTrials& trials, const FluidGpuOperands& operands, int64_t workspace,
                       const OverwritableOperands& overwritable);
  void store(const GpuTrials& trials, const RecordedAlgorithm& chosen);
  void record_rejection(const GpuTrials& trials);

  std::shared_ptr<const OpenGpu> gpu_;
  AlgorithmRecord record_;
  std::set<std::string> notes_;
  int revision_ = 0;
};

}  // namespace fluid
