#pragma once

#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "executor/gpu/choice_record.h"
#include "executor/gpu/gpu_trials.h"
#include "executor/gpu/open_gpu.h"

namespace fluid {

/// Chooses how libraries compute their tasks, and keeps what it chose, so that a program has the
/// same bits whenever it runs.
class GpuChooser {
 public:
  GpuChooser(std::shared_ptr<const OpenGpu> gpu, ChoiceRecord record)
      : gpu_(std::move(gpu)), record_(std::move(record)) {}

  /// Whether the library has a way to compute a task within so many bytes of workspace. Where it
  /// has none, that is remembered: the record refuses it. Throws DeviceError where memory is
  /// wanting to tell.
  bool has_way(const GpuTask& task, int64_t workspace);
  /// Operands of a task that hold nothing that is needed.
  using Unused = std::vector<std::span<std::byte>>;
  /// A task that captures may have. It is computed on `factors` for that, many times where it is
  /// timed: what their result and workspace held is lost, and what `unused` does, which is timed
  /// on noise, as GPUs are faster on zeros. Empty where the library has no way to compute it, or
  /// none that does not fail, recorded or not: the record refuses it then. Ways that fail for want
  /// of memory alone are passed over, what is taken instead is not kept for who comes later, and
  /// notes() says so; throws DeviceError where no other way works.
  GpuMultiplier multiplier(const GpuTask& task, const FluidGpuFactors& factors, int64_t workspace,
                           const Unused& unused = {});
  /// Lines, for people: of choices that are not what they should be.
  std::vector<std::string> notes() const { return {notes_.begin(), notes_.end()}; }
  /// Why the task is refused, which holds in this process from now on; empty where it is not.
  std::optional<std::string> refusal(const GpuTask& task);
  const ChoiceRecord& record() const { return record_; }
  /// ChoiceRecord::take(): multipliers made before may be others than it says then.
  bool take(const ChoiceRecord::Decisions& decisions);
  /// How often decisions were taken that changed multipliers.
  int revision() const { return revision_; }

 private:
  std::optional<KeptChoice> known(const GpuTask& task, int64_t workspace) const;
  GpuMultiplier kept(GpuTrials& trials, const FluidGpuFactors& factors, int64_t workspace);
  GpuMultiplier favourite(GpuTrials& trials, const FluidGpuFactors& factors, int64_t workspace);
  GpuMultiplier fastest(GpuTrials& trials, const FluidGpuFactors& factors, int64_t workspace,
                        const Unused& unused);
  void keep(const GpuTrials& trials, const KeptChoice& chosen);
  void refuse(const GpuTrials& trials);

  std::shared_ptr<const OpenGpu> gpu_;
  ChoiceRecord record_;
  std::set<std::string> notes_;
  int revision_ = 0;
};

}  // namespace fluid
