#pragma once

#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "executor/gpu_driver/open_gpu.h"
#include "executor/gpu_libraries/choice_record.h"
#include "executor/gpu_libraries/gpu_trials.h"

namespace fluid {

/// Chooses the libraries' algorithms and records the choices, so that a program gives the same bits
/// in every run.
class GpuChooser {
 public:
  GpuChooser(std::shared_ptr<const OpenGpu> gpu, ChoiceRecord record)
      : gpu_(std::move(gpu)), record_(std::move(record)) {}

  /// Whether the library has an algorithm for the task within `workspace` bytes. If not, this is
  /// recorded. Throws DeviceError when too little memory is free to decide.
  bool has_algorithm(const GpuTask& task, int64_t workspace);
  /// Operands whose content may be overwritten.
  using Unused = std::vector<std::span<std::byte>>;
  /// A plan for a task, ready for capture. Runs the task on `factors`, many times if timed, which
  /// overwrites the result and the workspace. Fills `unused` with random data for the timing,
  /// because GPUs compute faster on zeros.
  ///
  /// Empty when no algorithm of the library works; the record then says so. Skips algorithms that
  /// fail for lack of memory; the choice is then not kept on disk, and notes() reports it. Throws
  /// DeviceError when only such algorithms exist.
  GpuPlan gpu_plan(const GpuTask& task, const FluidGpuOperands& factors, int64_t workspace,
                   const Unused& unused = {});
  /// Lines for the user about choices that were limited by lack of memory.
  std::vector<std::string> notes() const { return {notes_.begin(), notes_.end()}; }
  /// The reason why the library has no algorithm for the task. The task is then refused for the
  /// rest of this process. Returns nullopt when no refusal is recorded.
  std::optional<std::string> refusal(const GpuTask& task);
  const ChoiceRecord& record() const { return record_; }
  /// See ChoiceRecord::adopt_tuning_record(). Plans created before may differ from the new
  /// decisions.
  bool adopt_tuning_record(const ChoiceRecord::Decisions& decisions);
  /// Number of adopt_tuning_record() calls that changed decisions.
  int revision() const { return revision_; }

 private:
  std::optional<KeptChoice> known(const GpuTask& task, int64_t workspace) const;
  GpuPlan kept(GpuTrials& trials, const FluidGpuOperands& factors, int64_t workspace);
  GpuPlan favourite(GpuTrials& trials, const FluidGpuOperands& factors, int64_t workspace);
  GpuPlan fastest(GpuTrials& trials, const FluidGpuOperands& factors, int64_t workspace,
                  const Unused& unused);
  void keep(const GpuTrials& trials, const KeptChoice& chosen);
  void record_rejection(const GpuTrials& trials);

  std::shared_ptr<const OpenGpu> gpu_;
  ChoiceRecord record_;
  std::set<std::string> notes_;
  int revision_ = 0;
};

}  // namespace fluid
